import { lineOf, mergedConversation, type ConversationLine, type SavedConversation } from './saved-conversation.ts';

/** Conversations in this browser, by IndexedDB: those of one person in one account have one owner. */

const database_name = 'medley-playground';
const lines_name = 'lines';
const contents_name = 'conversations';

type StoredLine = ConversationLine & { owner: string };
type StoredContent = { id: string; owner: string; conversation: SavedConversation };

/** A reason why nothing can be saved, for the person. */
export class StoreProblem extends Error {
  override name = 'StoreProblem';
}

let opening: Promise<IDBDatabase> | undefined;

function database(): Promise<IDBDatabase> {
  opening ??= open().catch((error: unknown) => {
    opening = undefined; // another try may do better
    throw error;
  });
  return opening;
}

function open(): Promise<IDBDatabase> {
  return new Promise((resolve, reject) => {
    const refuse = () =>
      reject(
        new StoreProblem('This browser saves nothing here, as in a private window: conversations end with the page.'),
      );
    if (typeof indexedDB === 'undefined') return refuse();
    try {
      const request = indexedDB.open(database_name, 1);
      request.addEventListener('upgradeneeded', () => {
        const lines = request.result.createObjectStore(lines_name, { keyPath: 'id' });
        lines.createIndex('owner', 'owner');
        request.result.createObjectStore(contents_name, { keyPath: 'id' });
      });
      request.addEventListener('error', refuse);
      request.addEventListener('blocked', refuse);
      request.addEventListener('success', () => {
        const db = request.result;
        // Another tab removes it, or the browser does: the next call opens it anew.
        const end = () => {
          db.close();
          opening = undefined;
        };
        db.addEventListener('versionchange', end);
        db.addEventListener('close', end);
        resolve(db);
      });
    } catch {
      refuse();
    }
    return undefined;
  });
}

/** Runs `work` in a transaction and returns what it asked for, when it is written. */
async function within<T>(
  mode: IDBTransactionMode,
  work: (lines: IDBObjectStore, contents: IDBObjectStore) => Promise<T>,
): Promise<T> {
  const db = await database();
  const transaction = db.transaction([lines_name, contents_name], mode);
  const ended = new Promise<void>((resolve, reject) => {
    transaction.addEventListener('complete', () => resolve());
    transaction.addEventListener('abort', () => reject(problemOf(transaction.error)));
    transaction.addEventListener('error', () => reject(problemOf(transaction.error)));
  });
  ended.catch(() => undefined); // `work` may fail first, with the same
  const result = await work(transaction.objectStore(lines_name), transaction.objectStore(contents_name)).catch(
    (error: unknown) => {
      throw problemOf(error);
    },
  );
  await ended;
  return result;
}

function problemOf(error: unknown): StoreProblem {
  if (error instanceof DOMException && error.name === 'QuotaExceededError') {
    return new StoreProblem('This browser has no room left. Delete conversations, or export and then delete them.');
  }
  return new StoreProblem('This browser could not save the conversation. Export it if you need it.');
}

function resultOf<T>(request: IDBRequest<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    request.addEventListener('success', () => resolve(request.result));
    request.addEventListener('error', () => reject(request.error ?? new Error('IndexedDB failed')));
  });
}

export const browser_store = {
  list: (owner: string): Promise<ConversationLine[]> =>
    within('readonly', (lines) => resultOf<StoredLine[]>(lines.index('owner').getAll(owner))),

  load: (owner: string, id: string): Promise<SavedConversation | undefined> =>
    within('readonly', async (_, contents) => {
      const stored = await resultOf<StoredContent | undefined>(contents.get(id));
      return stored?.owner === owner ? stored.conversation : undefined;
    }),

  /** Saves it with what another tab may have added to it, and returns both. */
  save: (owner: string, conversation: SavedConversation): Promise<SavedConversation> =>
    within('readwrite', async (lines, contents) => {
      const before = await resultOf<StoredContent | undefined>(contents.get(conversation.id));
      const both = before ? mergedConversation(conversation, before.conversation) : conversation;
      const content: StoredContent = { id: both.id, owner, conversation: both };
      const line: StoredLine = { ...lineOf(both), owner };
      await Promise.all([resultOf(contents.put(content)), resultOf(lines.put(line))]);
      return both;
    }),

  rename: (owner: string, id: string, title: string): Promise<void> =>
    within('readwrite', async (lines, contents) => {
      const stored = await resultOf<StoredContent | undefined>(contents.get(id));
      if (stored?.owner !== owner) return;
      const conversation = { ...stored.conversation, title, is_named: true };
      const line: StoredLine = { ...lineOf(conversation), owner };
      await Promise.all([resultOf(contents.put({ ...stored, conversation })), resultOf(lines.put(line))]);
    }),

  remove: (owner: string, ids: readonly string[]): Promise<void> =>
    within('readwrite', async (lines, contents) => {
      for (const id of ids) {
        const line = await resultOf<StoredLine | undefined>(lines.get(id));
        if (line && line.owner !== owner) continue;
        await Promise.all([resultOf(lines.delete(id)), resultOf(contents.delete(id))]);
      }
    }),
};

/** A change in one tab, for the others. */
export type StoreChange = { owner: string; kind: 'saved' | 'removed'; ids: readonly string[] };

let channel: BroadcastChannel | undefined;

/** One for sending and hearing: so a tab does not hear of its own changes. */
function tabs(): BroadcastChannel | undefined {
  if (typeof BroadcastChannel === 'undefined') return undefined;
  channel ??= new BroadcastChannel('medley-conversations');
  return channel;
}

export function announce(change: StoreChange): void {
  tabs()?.postMessage(change);
}

/** Hears of changes in other tabs until it is ended. */
export function listen(hear: (change: StoreChange) => void): () => void {
  const from = tabs();
  const onMessage = ({ data }: MessageEvent<StoreChange>) => hear(data);
  from?.addEventListener('message', onMessage);
  return () => from?.removeEventListener('message', onMessage);
}
