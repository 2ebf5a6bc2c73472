<?php // WEBHOOK_SECRET=whsec_… php -S 127.0.0.1:8080 webhook.php
function is_genuine(string $body): bool
{
    $id = $_SERVER['HTTP_WEBHOOK_ID'] ?? '';
    $seconds = $_SERVER['HTTP_WEBHOOK_TIMESTAMP'] ?? '';
    if (abs(time() - (int) $seconds) > 300) {
        return false;
    }
    $key = base64_decode(str_replace('whsec_', '', getenv('WEBHOOK_SECRET')));
    $expected = 'v1,' . base64_encode(hash_hmac('sha256', "$id.$seconds.$body", $key, true));
    foreach (explode(' ', $_SERVER['HTTP_WEBHOOK_SIGNATURE'] ?? '') as $given) {
        if (hash_equals($expected, $given)) {
            return true;
        }
    }
    return false;
}

$body = file_get_contents('php://input');
if (!is_genuine($body)) {
    http_response_code(400);
    exit;
}
$event = json_decode($body);
file_put_contents('php://stdout', "$event->id $event->type\n"); // Here the shop notes the event, once for each id.
http_response_code(204);
