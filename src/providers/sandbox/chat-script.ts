/** Script of a chat response: the directives in the last user message, and the route's options. */
import type { JsonObject } from '../../catalog/model.ts';
import { readScript, type Script } from './script.ts';

export type ScriptedCall = {
  name: string;
  /** JSON text; undefined if the directive gave none. */
  arguments: string | undefined;
};

export type ChatScript = Script & {
  /** Answers with this HTTP status instead. */
  error_status: number | undefined;
  /** Breaks off in the middle. */
  is_cut: boolean;
  tells_usage: boolean;
  /** Length of the text. */
  tokens: number | undefined;
  thinks: boolean;
  /** In order. */
  calls: ScriptedCall[];
};

/** Longer than this an upstream of a chat may not be silent anyway; the route's limits are above it. */
const delay_ms_max = 300_000;

const word_directive = /\[\[\s*(?:(cut|no usage|think)|error\s+([45]\d\d)|tokens\s+(\d{1,7}))\s*\]\]/giu;

/** The length that is read at the beginning and at the end of a long text: to look through 6 MB took 0.4 s. */
const read_length_max = 65_536;

/** The script of what a user's `prompt`. What only resembles a directive stays text, as everywhere in the sandbox. */
export function readChatScript(prompt: string, options: JsonObject): ChatScript {
  const is_long = prompt.length > 2 * read_length_max;
  const read = is_long ? `${prompt.slice(0, read_length_max)}\n${prompt.slice(-read_length_max)}` : prompt;
  const { calls, text } = takeCalls(read);
  const chat_script: Omit<ChatScript, keyof Script> = {
    error_status: undefined,
    is_cut: false,
    tells_usage: true,
    tokens: undefined,
    thinks: false,
    calls,
  };
  const rest = text.replace(word_directive, (_, word?: string, status?: string, tokens?: string) => {
    if (status !== undefined) chat_script.error_status = Number(status);
    else if (tokens !== undefined) chat_script.tokens = Number(tokens);
    else if (word?.toLowerCase() === 'cut') chat_script.is_cut = true;
    else if (word?.toLowerCase() === 'think') chat_script.thinks = true;
    else chat_script.tells_usage = false;
    return ' ';
  });
  const script = readScript(rest, options, delay_ms_max);
  return { ...script, ...chat_script, text: script.text.replaceAll(/[^\S\n]+/g, ' ').trim() };
}

const calls_max = 32;

/** Number of ends of a directive to try, over all of them: its JSON may contain `]]` itself. */
const ends_max = 256;

/** Takes `[[tool NAME {json}]]` out of a text; the JSON may be left out. */
function takeCalls(prompt: string): { calls: ScriptedCall[]; text: string } {
  const opening = /\[\[\s*tool\s+([A-Za-z0-9_.:-]{1,128})\s*/giu;
  const calls: ScriptedCall[] = [];
  let text = '';
  let done = 0;
  let ends = 0;
  const last_end = prompt.lastIndexOf(']]');
  const may_go_on = () => calls.length < calls_max && ends < ends_max && opening.lastIndex <= last_end;
  for (let match = opening.exec(prompt); match && may_go_on(); match = opening.exec(prompt)) {
    const from = opening.lastIndex;
    const [, name = ''] = match;
    for (let end = prompt.indexOf(']]', from); end !== -1 && ends < ends_max; end = prompt.indexOf(']]', end + 1)) {
      ends += 1;
      const json = prompt.slice(from, end).trim();
      if (json !== '' && !isObjectText(json)) continue;
      calls.push({ name, arguments: json === '' ? undefined : json });
      text += `${prompt.slice(done, match.index)} `;
      done = end + 2;
      opening.lastIndex = done;
      break;
    }
  }
  return { calls, text: text + prompt.slice(done) };
}

function isObjectText(text: string): boolean {
  if (!text.startsWith('{')) return false;
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
