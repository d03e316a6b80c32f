import type { JsonObject } from '../catalog/model.ts';
import type { ContentKeys } from '../db/content.ts';
import type { Db } from '../db/database.ts';
import { messagesOf, settingsOf } from '../contents/messages.ts';
import { eachContent, type CallContent, type FoundContent } from '../contents/stored.ts';
import { listRecords, type RecordFilter, type RecordLine } from './record.ts';

/** `full`: everything that is stored; `messages`: as files for training have it. */
export const export_forms = ['full', 'messages'] as const;

export type ExportForm = (typeof export_forms)[number];

/** The calls whose content is wanted. */
export type ExportFilter = Omit<RecordFilter, 'limit' | 'after' | 'before' | 'id'>;

/** More are in another file: it begins where this one ends. */
const calls_max = 10_000;
const page_calls = 100;

type Parts = { readonly db: Db; readonly content_keys: ContentKeys };

/** Yields a line of JSON for each call that has content, oldest first. */
export async function* contentLines(
  parts: Parts,
  filter: ExportFilter,
  form: ExportForm,
  now: Date,
): AsyncGenerator<string> {
  let last = 'req_';
  for (let count = 0; count < calls_max;) {
    const { lines: newest_first, has_more } = await listRecords(parts.db, {
      ...filter,
      limit: page_calls,
      before: last,
    });
    const records = newest_first.toReversed();
    const contents = new Map<string, FoundContent>();
    const of_page = { account_id: filter.account_id, ids: records.map(({ id }) => id) };
    for await (const content of eachContent(parts, of_page, now)) contents.set(content.id, content);
    for (const record of records) {
      const { content } = contents.get(record.id) ?? {};
      if (content) yield `${JSON.stringify(form === 'full' ? fullLine(record, content) : messagesLine(content))}\n`;
    }
    count += contents.size;
    last = records.at(-1)?.id ?? last;
    if (!has_more) return;
  }
}

function fullLine(record: RecordLine, content: CallContent): object {
  const { id, key_id, status, input_tokens, output_tokens, end_user, metadata, created_at } = record;
  return {
    request_id: id,
    created_at: created_at.toISOString(),
    key: key_id,
    status,
    ...contentView(content),
    usage: { input_tokens, output_tokens },
    ...(end_user !== null && { user: end_user }),
    ...(metadata && { metadata }),
  };
}

/** Messages with the first answer, and the tools: what files of OpenAI's form for training have. */
function messagesLine({ request, answers }: CallContent): object {
  const { tools } = request;
  return { messages: [...messagesOf(request), ...answers.slice(0, 1)], ...(Array.isArray(tools) && { tools }) };
}

/** The content of a call as its readers get it. */
export type ContentView = {
  model: string;
  style: string;
  messages: JsonObject[];
  answers: JsonObject[];
  settings: JsonObject;
  is_cut: boolean;
  redacted: Record<string, number>;
};

/** Returns a content in the one form in which all styles are read. */
export function contentView({ model, style, request, answers, is_cut, redacted }: CallContent): ContentView {
  const counts = Object.entries(redacted).filter(([, count]) => count > 0);
  return {
    model,
    style,
    messages: messagesOf(request),
    answers,
    settings: settingsOf(request),
    is_cut,
    redacted: Object.fromEntries(counts),
  };
}
