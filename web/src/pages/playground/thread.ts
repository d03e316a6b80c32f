import type { Turn } from './turn.ts';

/** A turn with its place: below the turn that it follows. Turns that follow the same one are versions of each other. */
export type ThreadNode = { id: string; parent: string | undefined; turn: Turn };

/** The conversation with one model: all that was ever said, in the order of time, and the turn at which one is. */
export type Thread = { nodes: readonly ThreadNode[]; leaf: string | undefined };

export const empty_thread: Thread = { nodes: [], leaf: undefined };

/** An id for a turn or a conversation. Without https there is no randomUUID. */
export function newId(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(12)), (byte) => byte.toString(16).padStart(2, '0')).join('');
}

/** The turns that are shown, from the first to the one at which one is. */
export function pathOf({ nodes, leaf }: Thread): ThreadNode[] {
  return pathTo(nodes, leaf);
}

/** The turns up to this one; none of undefined. */
export function pathTo(nodes: readonly ThreadNode[], id: string | undefined): ThreadNode[] {
  const by_id = new Map(nodes.map((node) => [node.id, node]));
  const path: ThreadNode[] = [];
  for (let node = by_id.get(id ?? ''); node; node = by_id.get(node.parent ?? '')) {
    path.push(node);
    by_id.delete(node.id); // a circle in what was stored ends
  }
  return path.toReversed();
}

/** Adds turns, each below the one before, the first below `parent`: one more version if another turn is there. */
export function addTurns(thread: Thread, parent: string | undefined, turns: readonly Turn[]): Thread {
  const nodes = [...thread.nodes];
  let leaf = parent;
  for (const turn of turns) {
    const node = { id: newId(), parent: leaf, turn };
    nodes.push(node);
    leaf = node.id;
  }
  return { nodes, leaf };
}

/** The versions of a turn, in the order of time, itself among them. */
export function versionsOf({ nodes }: Thread, { parent, turn: { role } }: ThreadNode): ThreadNode[] {
  return nodes.filter((each) => each.parent === parent && each.turn.role === role);
}

/** Goes to this turn, and from there to the latest that followed. */
export function goTo(thread: Thread, id: string): Thread {
  const latest = new Map(thread.nodes.map((node) => [node.parent, node.id])); // of several the last one stays
  let leaf = id;
  for (let next = latest.get(leaf); next !== undefined; next = latest.get(leaf)) {
    latest.delete(leaf); // a circle in what was stored ends
    leaf = next;
  }
  return { ...thread, leaf };
}

export function changeTurn(thread: Thread, id: string, change: (turn: Turn) => Turn): Thread {
  const at = thread.nodes.findLastIndex((node) => node.id === id);
  const node = thread.nodes[at];
  return node ? { ...thread, nodes: thread.nodes.with(at, { ...node, turn: change(node.turn) }) } : thread;
}

/**
 * Returns all that two tabs, or two browsers, said in the same conversation, with the place of the first of them; or with
 * that of the second, if it only went on from there.
 */
export function merged(mine: Thread, theirs: Thread): Thread {
  const others = new Map(theirs.nodes.map((node) => [node.id, node]));
  const nodes = mine.nodes.map((node) => further(node, others.get(node.id)));
  const ids = new Set(mine.nodes.map(({ id }) => id));
  const more = theirs.nodes.filter(({ id }) => !ids.has(id));
  const all = [...nodes, ...more];
  const goes_on = mine.leaf === undefined || pathTo(all, theirs.leaf).some(({ id }) => id === mine.leaf);
  return { nodes: all, leaf: goes_on ? (theirs.leaf ?? mine.leaf) : mine.leaf };
}

/** An answer comes to the tab that asked for it: another one may have only the beginning. The later vote stays. */
function further(mine: ThreadNode, theirs: ThreadNode | undefined): ThreadNode {
  if (mine.turn.role !== 'assistant' || theirs?.turn.role !== 'assistant') return mine;
  const is_whole = mine.turn.state === 'done' || mine.turn.state === 'streaming';
  const is_further = theirs.turn.state === 'done' || theirs.turn.text.length > mine.turn.text.length;
  const turn = !is_whole && is_further ? theirs.turn : mine.turn;
  const bill = turn.bill ?? mine.turn.bill ?? theirs.turn.bill;
  const is_later = (theirs.turn.voted_at ?? 0) > (mine.turn.voted_at ?? 0);
  const { vote, voted_at } = is_later ? theirs.turn : mine.turn;
  const is_same = turn === mine.turn && bill === turn.bill && !is_later;
  return is_same ? mine : { ...mine, turn: { ...turn, bill, vote, voted_at } };
}

/** Tells whether its model is answering. */
export function isAnswering(thread: Thread | undefined): boolean {
  return thread?.nodes.some(({ turn }) => turn.role === 'assistant' && turn.state === 'streaming') ?? false;
}
