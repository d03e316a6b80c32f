import { writeFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import type { Command } from 'commander';
import { writeDraft } from '../catalog/draft.ts';
import type { MediaKind } from '../catalog/model.ts';
import { described, DescriptionError, type Describe } from '../providers/describe.ts';
import { CommandError, says, type CommandResult } from './command.ts';
import { documentCommand } from './models-import-document.ts';
import { listCommands } from './models-import-list.ts';

export function importCommands(models: Command): void {
  const command = models
    .command('import')
    .description("models for medley.yaml: one from its provider's own description, or many from a list");
  for (const [provider, { read, base_url }] of Object.entries(described)) {
    const one = command.command(`${provider} <model>`).description(`such as ${provider} owner/name`);
    one.option('--base-url <url>', 'address of the provider', base_url).option('--out <file>', 'file to write it to');
    one.option('--kind <kind>', 'image, video or audio, if the description does not say');
    says(one, (name = '') => importOne(read, name, one.opts()));
  }
  documentCommand(command);
  listCommands(command);
}

type Options = { baseUrl?: string; out?: string; kind?: string };

async function importOne(read: Describe, name: string, options: Options): Promise<CommandResult> {
  if (!/^[\w.-]+(\/[\w.-]+)+$/.test(name)) throw new CommandError(`${name} must have the form owner/name.`, 2);
  const given_kind = readKind(options.kind);
  const draft = await read(name, (options.baseUrl ?? '').replace(/\/+$/, ''), given_kind).catch((error: unknown) => {
    throw error instanceof DescriptionError ? new CommandError(error.message) : error;
  });
  const text = writeDraft(draft, new Date().toISOString().slice(0, 10));
  const { id, kind, input_schema } = draft;
  const json = { id, kind, input_schema, yaml: `${text}\n`, file: null };
  if (options.out === undefined) return { json, text };
  const file = resolve(options.out);
  await writeFile(file, `${text}\n`, { flag: 'wx' }).catch((error: unknown) => {
    throw new CommandError(`${file} could not be written: ${error instanceof Error ? error.message : String(error)}`);
  });
  return { json: { ...json, file }, text: `${file} has a draft of ${id}: fill in its price.` };
}

const kinds = ['image', 'video', 'audio'] as const;

function readKind(text: string | undefined): MediaKind | undefined {
  const kind = kinds.find((one) => one === text);
  if (kind !== undefined || text === undefined) return kind;
  throw new CommandError(`--kind must be one of ${kinds.join(', ')}; not "${text}".`, 2);
}
