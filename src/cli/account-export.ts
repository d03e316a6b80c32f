import { open } from 'node:fs/promises';
import type { CommandApp } from '../app/command-app.ts';
import { exportContent, type ExportedLine } from '../conversations/export.ts';
import { contentKeys } from '../db/content.ts';
import { allFeedback } from '../feedback/feedback.ts';
import { CommandError, note, type CommandResult } from './command.ts';

/** Writes what is stored of an account to a file that was not there, down to the disk. */
export async function exportAccount(app: CommandApp, account_id: string, path: string): Promise<CommandResult> {
  const file = await open(path, 'wx', 0o600).catch((error: unknown) => {
    throw new CommandError(`${path} cannot be made: ${error instanceof Error ? error.message : String(error)}`);
  });
  const counts: Record<ExportedLine['type'], number> = {
    response: 0,
    conversation: 0,
    conversation_item: 0,
    chat_content: 0,
  };
  let unreadable = 0;
  let feedback = 0;
  try {
    const parts = { db: app.db, content_keys: contentKeys(app.config) };
    for await (const line of exportContent(parts, { account_id, now: new Date(app.clock.now()) })) {
      await file.appendFile(`${JSON.stringify(line)}\n`);
      counts[line.type]++;
      if ('content' in line && line.content === null) unreadable++;
    }
    for await (const each of allFeedback(app.db, account_id)) {
      await file.appendFile(`${JSON.stringify({ type: 'feedback', ...each })}\n`);
      feedback++;
    }
    await file.sync();
  } finally {
    await file.close();
  }
  const { response: responses, conversation: conversations, conversation_item: items, chat_content: contents } = counts;
  const details = { responses, conversations, items, contents, feedback, unreadable };
  await note(app, { account_id, action: 'account.export', subject: account_id, details });
  const closed = unreadable === 0 ? '' : `; ${unreadable} of them cannot be read with this MEDLEY_SECRET`;
  return {
    json: { id: account_id, ...details, file: path },
    text: `${responses} responses and ${conversations} conversations with ${items} items, ${contents} contents of chat calls, and ${feedback} scores, written to ${path}${closed}`,
  };
}
