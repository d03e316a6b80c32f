// What the documents use of curl, for machines that have none: -sS -fsS -o -H -d -F -X and one address.
import { readFileSync, writeFileSync } from 'node:fs';

const words = process.argv.slice(2);
const options = { headers: {} };
let url, file;
let fails = false;
for (let word = words.shift(); word !== undefined; word = words.shift()) {
  if (word === '-H') {
    const header = words.shift();
    const colon = header.indexOf(':');
    options.headers[header.slice(0, colon)] = header.slice(colon + 1).trim();
  } else if (word === '-d') Object.assign(options, { method: 'POST', body: words.shift() });
  else if (word === '-F') addField(words.shift());
  else if (word === '-X') options.method = words.shift();
  else if (word === '-o') file = words.shift();
  else if (!word.startsWith('-')) url = word;
  else if (word === '-fsS') fails = true;
  else if (word !== '-sS') throw new Error(`This curl has no ${word}.`);
}
const response = await fetch(url, options);
if (fails && !response.ok) throw new Error(`The answer has the status ${response.status}.`);
const bytes = Buffer.from(await response.arrayBuffer());
if (file === undefined) process.stdout.write(bytes);
else writeFileSync(file, bytes);

function addField(field) {
  const [, name, file_name, text] = /^(\w+)=(?:@(.+)|(.*))$/.exec(field);
  options.method = 'POST';
  options.body ??= new FormData();
  if (file_name === undefined) options.body.append(name, text);
  else options.body.append(name, new Blob([readFileSync(file_name)]), file_name);
}
