import type { Command } from 'commander';
import { reload_channel, reloaded_channel, type AppWithoutEngine, type Reloaded } from '../app.ts';
import { checkCatalogFile } from '../catalog/catalog.ts';
import { readConfig } from '../config.ts';
import { adapters } from '../providers/index.ts';
import { CommandError, says, withApp, type Said } from './command.ts';

export function configCommands(program: Command): void {
  const config = program.command('config').description('the configuration file');
  says(config.command('check [file]').description('check a medley.yaml; every mistake as file:line:col'), checkFile);
  says(program.command('reload').description('ask the running service to read its configuration again'), () =>
    withApp(reload),
  );
}

async function checkFile(file?: string): Promise<Said> {
  const path = file ?? readConfig().config_file ?? 'medley.yaml';
  const { errors, warnings } = await checkCatalogFile(path, {
    adapters: Object.keys(adapters),
    canServe: (adapter, kind) => adapters[adapter]?.serves(kind) ?? false,
  });
  const lines = [...errors, ...warnings.map((warning) => `warning: ${warning}`)];
  const ok = errors.length === 0;
  if (ok) lines.push(`${path} is in order${warnings.length > 0 ? `, with ${warnings.length} warning(s)` : ''}.`);
  return { json: { ok, file: path, errors, warnings }, text: lines.join('\n'), exit_code: ok ? 0 : 2 };
}

const first_answer_ms = 5_000;
const further_answers_ms = 300;

/** Every node answers for itself; the command waits a moment longer for the others after the first. */
async function reload(app: AppWithoutEngine): Promise<Said> {
  const nodes: Reloaded[] = [];
  await new Promise<void>((resolve, reject) => {
    const timeout = setTimeout(resolve, first_answer_ms);
    const onPayload = (payload: string) => {
      nodes.push(JSON.parse(Buffer.from(payload, 'base64url').toString()));
      setTimeout(resolve, further_answers_ms);
      clearTimeout(timeout);
    };
    app.listener
      .subscribe(reloaded_channel, { onPayload })
      .then(() => app.notifier.notify(reload_channel, 'now'), reject);
  });
  if (nodes.length === 0) throw new CommandError('No running service answered.');
  const ok = nodes.every((node) => node.ok);
  return {
    json: { ok, nodes },
    text: nodes.map((node) => `${node.node}: ${node.message}`).join('\n'),
    exit_code: ok ? 0 : 1,
  };
}
