// Reads a stream of events with the npm package eventsource, and prints the id of each event.
const { EventSource } = require("eventsource");

const source = new EventSource(process.argv[2]);
source.addEventListener("open", () => console.log("open"));
for (const type of process.argv.slice(3)) {
  source.addEventListener(type, (event) => console.log(`${event.lastEventId} ${JSON.parse(event.data).id}`));
}
process.stdin.resume().on("end", () => process.exit(0));
