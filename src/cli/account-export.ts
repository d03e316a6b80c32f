import { open } from 'node:fs/promises';
import { allPrompts, type PromptRecord } from '../accounts/prompts.ts';
import type { CommandApp } from '../app/command-app.ts';
import { exportContent, type ExportedLine } from '../conversations/export.ts';
import { contentKeys } from '../db/content.ts';
import { allFeedback, type Feedback } from '../feedback/feedback.ts';
import { allRefusals, type RefusalRecord } from '../money/refusals.ts';
import { filtersOf } from '../webhooks/endpoint-fields.ts';
import { listEndpoints, type WebhookEndpoint } from '../webhooks/endpoints.ts';
import { CommandError, auditCommand, type CommandResult } from './command.ts';

/** Writes what is stored of an account to a file that was not there, down to the disk. */
export async function exportAccount(app: CommandApp, account_id: string, path: string): Promise<CommandResult> {
  const file = await open(path, 'wx', 0o600).catch((error: unknown) => {
    throw new CommandError(`${path} cannot be made: ${error instanceof Error ? error.message : String(error)}`);
  });
  const counts: Record<Line['type'], number> = {
    response: 0,
    conversation: 0,
    conversation_item: 0,
    chat_content: 0,
    feedback: 0,
    prompt: 0,
    webhook_endpoint: 0,
    refusal: 0,
  };
  let unreadable = 0;
  try {
    for await (const line of linesOf(app, account_id)) {
      await file.appendFile(`${JSON.stringify(line)}\n`);
      counts[line.type]++;
      if ('content' in line && line.content === null) unreadable++;
    }
    await file.sync();
  } finally {
    await file.close();
  }
  const { response: responses, conversation: conversations, conversation_item: items, chat_content: contents } = counts;
  const { feedback, prompt: prompts, webhook_endpoint: endpoints, refusal: refusals } = counts;
  const details = { responses, conversations, items, contents, feedback, prompts, endpoints, refusals, unreadable };
  await auditCommand(app, { account_id, action: 'account.export', subject: account_id, details });
  const closed = unreadable === 0 ? '' : `; ${unreadable} of them cannot be read with this MEDLEY_SECRET`;
  return {
    json: { id: account_id, ...details, file: path },
    text: `${responses} responses and ${conversations} conversations with ${items} items, ${contents} contents of chat calls, ${feedback} scores, ${prompts} versions of prompts, ${endpoints} webhook endpoints, and ${refusals} counts of refused requests, written to ${path}${closed}`,
  };
}

type Line =
  | ExportedLine
  | ({ type: 'feedback' } & Feedback)
  | ({ type: 'prompt' } & PromptRecord)
  | ({ type: 'refusal' } & RefusalRecord)
  | ({ type: 'webhook_endpoint' } & ReturnType<typeof withoutSecrets>);

/** Reads what is stored of an account, in the order of the file. */
async function* linesOf(app: CommandApp, account_id: string): AsyncGenerator<Line> {
  const parts = { db: app.db, content_keys: contentKeys(app.config) };
  yield* exportContent(parts, { account_id, now: new Date(app.clock.now()) });
  for await (const each of allFeedback(app.db, account_id)) yield { type: 'feedback', ...each };
  for await (const each of allPrompts(app.db, account_id)) yield { type: 'prompt', ...each };
  for (const each of await listEndpoints(app.db, account_id))
    yield { type: 'webhook_endpoint', ...withoutSecrets(each) };
  for await (const each of allRefusals(app.db, account_id)) yield { type: 'refusal', ...each };
}

function withoutSecrets({ id, url, description, events, enabled, created_at, ...endpoint }: WebhookEndpoint) {
  return { id, url, description, events, filters: filtersOf(endpoint), enabled, created_at };
}
