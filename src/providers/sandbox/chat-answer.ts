/** Writes the sandbox's response in a chat: the same for the same conversation. */
import { hash } from 'node:crypto';
import type { ChatAnswer, Conversation, Part, Tool } from '../../styles/conversation.ts';
import { rememberByObject } from '../../lib/remember.ts';
import type { Prober } from '../../storage/probe.ts';
import { describeMedia, quoted, textOf } from './chat-media.ts';
import type { ChatScript, ScriptedCall } from './chat-script.ts';
import { instanceOf } from './json-instance.ts';
import { chanceFrom } from './seed.ts';

/** The present moment of a conversation: its user's last message, and the tool results since. */
export type Moment = {
  last_text: string;
  /** Results of tools that came after it. */
  results: Extract<Part, { type: 'tool_result' }>[];
  /** Calls of tools since then. */
  calls_made: number;
};

export function momentOf({ turns }: Conversation): Moment {
  const last = turns.findLastIndex(({ role, parts }) => role === 'user' && parts.some(({ type }) => type === 'text'));
  const since = turns.slice(last + 1).flatMap(({ parts }) => parts);
  return {
    last_text: textOf(turns[last]?.parts ?? []),
    results: since.filter((part) => part.type === 'tool_result'),
    calls_made: since.filter((part) => part.type === 'tool_call').length,
  };
}

type AnswerParts = { moment: Moment; script: ChatScript; seed: number; prober: Prober };

/** An answer before it is cut to size; `seed` makes the several answers to one request differ. */
export async function answerTo(conversation: Conversation, parts: AnswerParts): Promise<ChatAnswer> {
  const { moment, script } = parts;
  const thoughts = isThinking(conversation, script) ? [thoughtAbout(script.text)] : [];
  const calls = callsOf(conversation, moment, script);
  if (calls.length > 0) {
    const tool_calls = calls.map((call, index) => toolCall(conversation, call, index));
    return { parts: [...thoughts, ...tool_calls], finish: { reason: 'tool_calls' } };
  }
  const text = await textFor(conversation, parts);
  return { parts: [...thoughts, { type: 'text', text }], finish: { reason: 'stop' } };
}

/** Told so, or given tokens to think with; a mere permission to think is not used. */
function isThinking({ thinking }: Conversation, script: ChatScript): boolean {
  return script.thinks || (thinking?.mode === 'on' && (thinking.budget_tokens ?? 0) > 0);
}

function thoughtAbout(text: string): Part {
  const thought = `The user says ${quoted(text)} The sandbox has thought about it: it says what it says.`;
  return { type: 'thinking', text: thought, signature: signatureOf(thought) };
}

const signature_prefix = 'sandbox.';

function signatureOf(thought: string): string {
  return signature_prefix + hash('sha256', `thought by the sandbox: ${thought}`, 'base64');
}

/** Thinking of ours that comes back changed, which every upstream that signs refuses. */
export function hasForgedThinking({ turns }: Conversation): boolean {
  return turns.some(({ parts }) =>
    parts.some(
      (part) =>
        part.type === 'thinking' &&
        part.signature?.startsWith(signature_prefix) === true &&
        part.signature !== signatureOf(part.text),
    ),
  );
}

/** Calls that a directive asks for and that were not made yet, else the one that tool_choice insists on. */
function callsOf(conversation: Conversation, moment: Moment, script: ChatScript): ScriptedCall[] {
  const { tools, tool_choice } = conversation;
  const mode = tool_choice?.mode ?? 'auto';
  const [first] = tools;
  if (!first || mode === 'none') return [];
  const calls = script.calls
    .slice(moment.calls_made)
    .filter(({ name }) => toolNamed(tools, name) && (tool_choice?.mode !== 'one' || tool_choice.name === name));
  if (calls.length > 0) return conversation.parallel_tool_calls === false ? calls.slice(0, 1) : calls;
  if (tool_choice?.mode === 'one') return [{ name: tool_choice.name, arguments: undefined }];
  return mode === 'any' ? [{ name: first.name, arguments: undefined }] : [];
}

function toolNamed(tools: readonly Tool[], name: string): Tool | undefined {
  return tools.find((tool) => tool.name === name);
}

/** Without arguments of a directive, some that fit the tool's schema. */
function toolCall(conversation: Conversation, call: ScriptedCall, index: number): Part {
  const schema = toolNamed(conversation.tools, call.name)?.schema ?? {};
  const json = call.arguments ?? JSON.stringify(instanceOf({ type: 'object', ...schema }));
  const id = `call_${hash('sha256', JSON.stringify([digestOf(conversation), call.name, index])).slice(0, 24)}`;
  return { type: 'tool_call', id, name: call.name, arguments: json };
}

/** Once for all calls: there may be 256 of them in the answers to 32 MB. */
const digestOf = rememberByObject(({ turns }: Conversation) => hash('sha256', JSON.stringify(turns)));

/** Without max_tokens; more than that nobody hears. */
const tokens_max = 16_384;

async function textFor(conversation: Conversation, parts: AnswerParts): Promise<string> {
  const { script, seed } = parts;
  if (script.tokens !== undefined) {
    const limit = conversation.max_tokens ?? tokens_max;
    return wordsOf(Math.min(script.tokens, limit + 1), `${seed} ${script.text}`);
  }
  const text = await sentences(conversation, parts);
  const { format } = conversation;
  if (!format) return text;
  return JSON.stringify(format.type === 'json' ? { answer: text } : instanceOf(format.schema));
}

async function sentences(
  conversation: Conversation,
  { moment: { results }, script, seed, prober }: AnswerParts,
): Promise<string> {
  const { turns, tools } = conversation;
  const messages = turns.filter(({ role }) => role === 'user').length;
  const system = textOf(turns.filter(({ role }) => role === 'system').flatMap(({ parts }) => parts));
  const missing = script.calls.find(({ name }) => !toolNamed(tools, name));
  const answers = [
    results.length === 0 ? 'This is the Medley sandbox. No model is behind it.' : '',
    ...results.map((result) => `The tool ${result.is_error ? 'failed' : 'answered'}: ${quoted(textOf(result.parts))}`),
    results.length === 0 && script.text !== '' ? `You said: ${quoted(script.text)}` : '',
    ...(await describeMedia(conversation, prober)),
    system === '' ? '' : `Your system prompt says: ${quoted(system)}`,
    messages > 1 ? `We are at turn ${messages} of yours.` : '',
    missing ? `There is no tool ${missing.name} in this request.` : '',
    seed > 0 ? `This is answer ${seed + 1} of several.` : '',
  ];
  return answers.filter((sentence) => sentence !== '').join(' ');
}

/** Each is one token with the space before it, and so is the full stop. */
const words = [
  ' the',
  ' and',
  ' with',
  ' from',
  ' water',
  ' light',
  ' over',
  ' under',
  ' small',
  ' green',
  ' house',
  ' river',
  ' stone',
  ' morning',
  ' evening',
  ' again',
  ' never',
  ' always',
  ' walks',
  ' sings',
  ' waits',
  ' falls',
  ' red',
  ' blue',
] as const;

/** A text of exactly so many tokens. */
function wordsOf(count: number, seed: string): string {
  const chance = chanceFrom(seed);
  return Array.from({ length: count }, (_, index) => (index % 12 === 11 ? '.' : chance.pick(words))).join('');
}
