import { newId, type Thread, type ThreadNode } from '../thread.ts';
import type { AttachedFile, Attachment } from '../turn.ts';

/** The part of a conversation in which its files are. */
type WithThreads = { threads: Readonly<Record<string, Thread>> };

/** Returns the conversation with an id for each of its files, the same for the same content, also as it was `before`. */
export function withFileIds<T extends WithThreads>(conversation: T, before?: WithThreads): T {
  const attached = filesIn(conversation);
  if (attached.every(({ id }) => id !== undefined)) return conversation;
  const with_ids = [...attached, ...filesIn(before)];
  const ids = new Map(with_ids.flatMap((file) => (file.id === undefined ? [] : [[file.data, file.id]])));
  return withEachFile(conversation, (file) => {
    if (file.id !== undefined) return file;
    const id = ids.get(file.data) ?? newId();
    ids.set(file.data, id);
    return { ...file, id };
  });
}

/** Returns the conversation without the content of its files, and that by their ids. */
export function withoutFiles<T extends WithThreads>(conversation: T): { light: T; files: Map<string, string> } {
  const files = new Map<string, string>();
  const light = withEachFile(conversation, (file) => {
    if (file.id === undefined || file.data === '') return file; // a file that was lost has no content any more
    files.set(file.id, file.data);
    return { ...file, data: '' };
  });
  return { light, files };
}

/** Returns the conversation with the content of its files: `load` reads those that `at_hand` does not have. */
export async function withFiles<T extends WithThreads>(
  conversation: T,
  at_hand: WithThreads | undefined,
  load: (id: string) => Promise<string>,
): Promise<T> {
  const data = new Map(
    filesIn(at_hand).flatMap(({ id, data: own }) => (id !== undefined && own !== '' ? [[id, own]] : [])),
  );
  for (const { id, data: own } of filesIn(conversation)) {
    if (id !== undefined && own === '' && !data.has(id)) data.set(id, await load(id));
  }
  return withEachFile(conversation, (file) => ({ ...file, data: data.get(file.id ?? '') ?? file.data }));
}

function filesIn(conversation: WithThreads | undefined): AttachedFile[] {
  return Object.values(conversation?.threads ?? {}).flatMap(({ nodes }) =>
    nodes.flatMap(({ turn }) => (turn.role === 'user' ? turn.files.filter((file) => file.kind !== 'link') : [])),
  );
}

function withEachFile<T extends WithThreads>(conversation: T, change: (file: AttachedFile) => AttachedFile): T {
  const changeAttachment = (file: Attachment) => (file.kind === 'link' ? file : change(file));
  const changeNode = (node: ThreadNode): ThreadNode =>
    node.turn.role === 'user' && node.turn.files.length > 0
      ? { ...node, turn: { ...node.turn, files: node.turn.files.map(changeAttachment) } }
      : node;
  const threads = Object.entries(conversation.threads).map(([model, thread]): [string, Thread] => [
    model,
    { ...thread, nodes: thread.nodes.map(changeNode) },
  ]);
  return { ...conversation, threads: Object.fromEntries(threads) };
}
