// WEBHOOK_SECRET=whsec_… node webhook.mjs 8080
import { createHmac, timingSafeEqual } from "node:crypto";
import { createServer } from "node:http";

const key = Buffer.from(process.env.WEBHOOK_SECRET.replace("whsec_", ""), "base64");

function isGenuine(headers, body) {
  const { "webhook-id": id, "webhook-timestamp": seconds } = headers;
  if (!(Math.abs(Date.now() / 1000 - seconds) < 300)) return false;
  const expected = createHmac("sha256", key).update(`${id}.${seconds}.`).update(body).digest();
  return (headers["webhook-signature"] ?? "").split(" ").some((signature) => {
    const given = Buffer.from(signature.replace("v1,", ""), "base64");
    return given.length === expected.length && timingSafeEqual(given, expected);
  });
}

createServer(async (request, response) => {
  const parts = [];
  for await (const part of request) parts.push(part);
  const body = Buffer.concat(parts);
  if (!isGenuine(request.headers, body)) return response.writeHead(400).end();
  const event = JSON.parse(body);
  console.log(event.id, event.type); // Here the shop notes the event, once for each id.
  response.writeHead(204).end();
}).listen(process.argv[2], "127.0.0.1");
