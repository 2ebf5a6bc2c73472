// Reads webhooks' requests and secrets from standard input. Prints which of the secrets have signed each request.
const { Webhook } = require("standardwebhooks");

let text = "";
process.stdin.on("data", (part) => (text += part));
process.stdin.on("end", () => {
  const verified = JSON.parse(text).map(({ secrets, headers, body }) =>
    secrets.map((secret) => {
      try {
        new Webhook(secret).verify(body, headers);
        return true;
      } catch {
        return false;
      }
    }),
  );
  console.log(JSON.stringify(verified));
});
