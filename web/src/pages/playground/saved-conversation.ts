import { isRecord } from '../../record.ts';
import { settingsIn, type Settings } from './conversation.ts';
import { pathOf, type Thread } from './thread.ts';
import type { Turn } from './turn.ts';

/** A conversation of the playground as it is saved, with one model or several side by side. */
export type SavedConversation = {
  id: string;
  title: string;
  /** Somebody chose the title: it does not change with the first message. */
  is_named: boolean;
  /** The time of that; absent where an older version of the page named it. */
  named_at?: number | undefined;
  /** Ids of the models, the first one first. */
  models: string[];
  settings: Settings;
  /** By the id of the model. */
  threads: Readonly<Record<string, Thread>>;
  source?: Source | undefined;
  created_at: number;
  updated_at: number;
};

/** The stored call from which a conversation was opened. `notes`: what of it could not be taken over, a sentence each. */
export type Source = { call: string; notes: readonly string[] };

/** A line of the list. `words` are those by which it is found. */
export type ConversationLine = Pick<SavedConversation, 'id' | 'title' | 'models' | 'updated_at'> & { words: string };

const title_max = 60;
const words_max = 8_000;

/** The first line of the first message. */
export function titleOf(threads: SavedConversation['threads']): string {
  const texts = Object.values(threads).flatMap(({ nodes }) => nodes.flatMap(({ turn }) => userText(turn)));
  const line = (texts.find((text) => text.trim() !== '') ?? '').trim().split('\n')[0] ?? '';
  if (line === '') return 'Files';
  return line.length > title_max ? `${line.slice(0, title_max - 1).trimEnd()}…` : line;
}

function userText(turn: Turn): string[] {
  return turn.role === 'user' ? [turn.text] : [];
}

export function lineOf({ id, title, models, updated_at, threads }: SavedConversation): ConversationLine {
  const texts = Object.values(threads).flatMap(({ nodes }) => nodes.map(({ turn }) => turn.text));
  return { id, title, models, updated_at, words: [...new Set(texts)].join('\n').slice(0, words_max) };
}

/** Lines that have all words of the search, latest first. */
export function foundIn(lines: readonly ConversationLine[], search: string): ConversationLine[] {
  const words = search.toLowerCase().split(/\s+/).filter(Boolean);
  return lines
    .filter(({ title, words: text, models }) => {
      const all = `${title}\n${models.join(' ')}\n${text}`.toLowerCase();
      return words.every((word) => all.includes(word));
    })
    .toSorted((a, b) => b.updated_at - a.updated_at);
}

/** The conversation as it is after its page was closed: an answer that was under way came to its end there. */
export function atRest(saved: SavedConversation): SavedConversation {
  const threads = Object.entries(saved.threads).map(([id, thread]): [string, Thread] => {
    const nodes = thread.nodes.map((node) => {
      const { turn } = node;
      const is_open = turn.role === 'assistant' && turn.state === 'streaming';
      return is_open ? { ...node, turn: { ...turn, state: 'stopped' as const } } : node;
    });
    return [id, { ...thread, nodes }];
  });
  return { ...saved, settings: settingsOf(saved.settings), threads: Object.fromEntries(threads) };
}

/** Settings that an older version of the page stored may lack members of today. */
function settingsOf(settings: Settings): Settings {
  return { ...settingsIn(undefined), ...(isRecord(settings) && settings) };
}

/** Returns the shown versions as Markdown: for reading, and for other programs. */
export function asMarkdown({ title, threads }: SavedConversation): string {
  const parts = [`# ${title}`];
  for (const [model, thread] of Object.entries(threads)) {
    if (Object.keys(threads).length > 1) parts.push(`## ${model}`);
    for (const { turn } of pathOf(thread)) {
      const who = turn.role === 'user' ? 'You' : turn.role === 'tool' ? 'Tool' : model;
      const files = turn.role === 'user' ? turn.files.map(({ name }) => `(file: ${name})`) : [];
      parts.push([`**${who}:**`, ...files, turn.text].filter((text) => text !== '').join('\n\n'));
    }
  }
  return `${parts.join('\n\n')}\n`;
}
