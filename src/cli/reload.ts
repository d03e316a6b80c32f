import type { Command } from 'commander';
import { reload_channel, reloaded_channel, type ReloadReply } from '../app/channels.ts';
import type { CommandApp } from '../app/command-app.ts';
import { CommandError, auditCommand, says, withApp, type CommandResult } from './command.ts';

export function reloadCommand(command: Command): void {
  says(command, () => withApp(reload));
}

const first_answer_ms = 5_000;
const further_answers_ms = 300;

/** Every node answers for itself; the command waits a moment longer for the others after the first. */
async function reload(app: CommandApp): Promise<CommandResult> {
  const nodes: ReloadReply[] = [];
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
  await auditCommand(app, { action: 'configuration.reload', details: { ok } });
  return {
    json: { ok, nodes },
    text: nodes.map((node) => `${node.node}: ${node.message}`).join('\n'),
    exit_code: ok ? 0 : 1,
  };
}
