import type { ConversationLine, SavedConversation } from './saved-conversation.ts';

/** The tables in which a browser keeps conversations: in IndexedDB, or in memory where it saves nothing. */

/** A reason why nothing can be saved, for the person. */
export class StoreProblem extends Error {
  override name = 'StoreProblem';
}

export type StoredLine = ConversationLine & { owner: string; edit?: string };

/** `edit` is another one after each change in this browser. */
export type StoredContent = { id: string; owner: string; conversation: SavedConversation; edit?: string };

/** The state of a conversation on the server as this browser knows it. */
export type SyncRecord = {
  id: string;
  owner: string;
  /** That of all conversations of the person: another one after everything was removed there. */
  epoch: string;
  version: number;
  /** The edit that the server has. */
  sent_edit: string | undefined;
  /** Ids of the files that it has. */
  files: readonly string[];
  /** Deleted here, and not yet there. */
  is_removed: boolean;
};

type Row = { id: string; owner: string };

/** Rows by their id, each of one owner. */
type Table<R extends Row> = {
  get(id: string): Promise<R | undefined>;
  ofOwner(owner: string): Promise<R[]>;
  put(row: R): Promise<unknown>;
  delete(id: string): Promise<unknown>;
};

export type Tables = {
  lines: Table<StoredLine>;
  contents: Omit<Table<StoredContent>, 'ofOwner'>; // they are large
  sync: Table<SyncRecord>;
};

const database_name = 'medley-playground';
const table_names = ['lines', 'conversations', 'sync'] as const;

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
      const request = indexedDB.open(database_name, 2);
      request.addEventListener('upgradeneeded', () => {
        for (const name of table_names) {
          if (request.result.objectStoreNames.contains(name)) continue;
          const table = request.result.createObjectStore(name, { keyPath: 'id' });
          if (name !== 'conversations') table.createIndex('owner', 'owner');
        }
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

/** Those of this page. */
let memory: Tables | undefined;
let memory_turn: Promise<unknown> = Promise.resolve();

/** Uses the memory of the page from now on if this browser saves nothing, and says so: there is another copy. */
export async function fallBackToMemory(): Promise<boolean> {
  if (memory) return true;
  try {
    await database();
    return false;
  } catch {
    memory = { lines: memoryTable(), contents: memoryTable(), sync: memoryTable() };
    return true;
  }
}

function memoryTable<R extends Row>(): Table<R> {
  const rows = new Map<string, R>();
  return {
    get: async (id) => rows.get(id),
    ofOwner: async (owner) => [...rows.values()].filter((row) => row.owner === owner),
    put: async (row) => rows.set(row.id, row),
    delete: async (id) => rows.delete(id),
  };
}

function tableOf<R extends Row>(rows: IDBObjectStore): Table<R> {
  return {
    get: (id) => resultOf<R | undefined>(rows.get(id)),
    ofOwner: (owner) => resultOf<R[]>(rows.index('owner').getAll(owner)),
    put: (row) => resultOf(rows.put(row)),
    delete: (id) => resultOf(rows.delete(id)),
  };
}

/** Runs `work` in a transaction and returns what it asked for, when it is written. */
export async function inTransaction<T>(mode: IDBTransactionMode, work: (tables: Tables) => Promise<T>): Promise<T> {
  if (memory) {
    const tables = memory;
    const result = memory_turn.then(() => work(tables)); // one after the other, as transactions are
    memory_turn = result.catch(() => undefined);
    return result;
  }
  const db = await database();
  const transaction = db.transaction(table_names, mode);
  const ended = new Promise<void>((resolve, reject) => {
    transaction.addEventListener('complete', () => resolve());
    transaction.addEventListener('abort', () => reject(problemOf(transaction.error)));
    transaction.addEventListener('error', () => reject(problemOf(transaction.error)));
  });
  ended.catch(() => undefined); // `work` may fail first, with the same
  const tables: Tables = {
    lines: tableOf(transaction.objectStore('lines')),
    contents: tableOf(transaction.objectStore('conversations')),
    sync: tableOf(transaction.objectStore('sync')),
  };
  const result = await work(tables).catch((error: unknown) => {
    throw problemOf(error);
  });
  await ended;
  return result;
}

function problemOf(error: unknown): StoreProblem {
  if (error instanceof StoreProblem) return error;
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
