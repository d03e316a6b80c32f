#!/usr/bin/env node
import { readFile } from 'node:fs/promises';
import { parseArgs } from 'node:util';
import { Medley } from './client.ts';
import { MedleyError } from './errors.ts';
import { declarationsOf } from './input-types.ts';
import { writeFile } from './node.ts';

const help = `Usage: npx @medley/client types [options] [MODEL…]

Writes the inputs of a service's models as types: generate(model, input) is checked by the compiler then.

  -o, --output FILE   the file, such as medley-models.d.ts; it is printed unless set
  --check             write nothing; end with 1 if the file is not as it would be written
  --closed            ids of other models are mistakes
  --base-url URL      the service; MEDLEY_URL unless set
  --key KEY           an API key; MEDLEY_API_KEY unless set, where no list of processes shows it
  MODEL…              ids of models; all that take tasks unless set
`;

const options = {
  output: { type: 'string', short: 'o' },
  check: { type: 'boolean' },
  closed: { type: 'boolean' },
  'base-url': { type: 'string' },
  key: { type: 'string' },
  help: { type: 'boolean', short: 'h' },
} as const;

/** Mistakes of the words of a command line. */
class UsageError extends Error {}

process.exitCode = await main(process.argv.slice(2));

/** Returns the exit code: 1 for what failed or is stale, 2 for words that mean nothing. */
async function main(words: string[]): Promise<number> {
  try {
    return await run(words);
  } catch (error) {
    const is_usage = error instanceof UsageError || (error instanceof TypeError && 'code' in error);
    if (!is_usage && !(error instanceof MedleyError) && !(error instanceof Error && 'code' in error)) throw error;
    process.stderr.write(`medley-client: ${error.message}\n${is_usage ? `\n${help}` : ''}`);
    return is_usage ? 2 : 1;
  }
}

async function run(words: string[]): Promise<number> {
  const { values, positionals } = parseArgs({ args: words, options, allowPositionals: true });
  const [command, ...ids] = positionals;
  if (values.help) {
    process.stdout.write(help);
    return 0;
  }
  if (command !== 'types')
    throw new UsageError(
      command === undefined ? 'There is no command.' : `There is no command ${JSON.stringify(command)}.`,
    );
  const { output, check = false, closed = false } = values;
  if (check && output === undefined) throw new UsageError('--check needs --output, the file to be checked.');
  const medley = new Medley({ base_url: values['base-url'], api_key: values.key });
  const models = ids.length > 0 ? await Promise.all(ids.map((id) => medley.models.get(id))) : await all(medley);
  const text = declarationsOf(models, { closed });
  if (output === undefined) process.stdout.write(text);
  else if ((await read(output)) === text) return 0; // its time stays as it is, and nothing is built again
  else if (check) {
    process.stderr.write(
      `medley-client: ${output} is not as the service's models are. Write it again, without --check.\n`,
    );
    return 1;
  } else await writeFile(output, bytesOf(text), () => undefined);
  return 0;
}

async function all(medley: Medley) {
  const models = [];
  for await (const model of medley.models.list({ limit: 1000 })) models.push(model);
  return models;
}

/** Returns a file with the ends of lines that we write; undefined if there is none. */
async function read(path: string): Promise<string | undefined> {
  try {
    return (await readFile(path, 'utf8')).replaceAll('\r\n', '\n');
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined;
    throw error;
  }
}

async function* bytesOf(text: string): AsyncGenerator<Uint8Array> {
  yield new TextEncoder().encode(text);
}
