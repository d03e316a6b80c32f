import { merged, type Thread } from './thread.ts';

/** The part of a conversation that two tabs, or two browsers, may both have changed. */
type Mergeable = {
  title: string;
  is_named: boolean;
  named_at?: number | undefined;
  threads: Readonly<Record<string, Thread>>;
};

/** Joins both versions of one conversation. Models and settings are those of the first; the later title stays. */
export function mergedConversation<T extends Mergeable>(mine: T, theirs: T): T {
  const ids = new Set([...Object.keys(mine.threads), ...Object.keys(theirs.threads)]);
  const threads = Object.fromEntries(
    [...ids].flatMap((id) => {
      const [own, other] = [mine.threads[id], theirs.threads[id]];
      const thread = own && other ? merged(own, other) : (own ?? other);
      return thread ? [[id, thread]] : [];
    }),
  );
  const is_later = theirs.is_named && (theirs.named_at ?? 0) >= (mine.named_at ?? 0);
  const named = is_later ? { title: theirs.title, is_named: true, named_at: theirs.named_at } : {};
  return { ...mine, ...named, threads };
}
