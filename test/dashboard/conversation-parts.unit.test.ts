import { describe, expect, it } from 'vitest';
import { mergedConversation } from '../../web/src/pages/playground/merge.ts';
import { joinedLines } from '../../web/src/pages/playground/server/joined-lines.ts';
import { withFileIds, withFiles, withoutFiles } from '../../web/src/pages/playground/server/portable.ts';
import {
  addTurns,
  changeTurn,
  empty_thread,
  merged,
  pathOf,
  type Thread,
} from '../../web/src/pages/playground/thread.ts';
import type { AttachedFile, ModelAnswer, Turn } from '../../web/src/pages/playground/turn.ts';

/** Parts of conversations that are in several browsers: how two versions are joined, and how files travel. */

const question = (text: string, files: AttachedFile[] = []): Turn => ({ role: 'user', text, files });

const answer: ModelAnswer = {
  role: 'assistant',
  text: 'Yes.',
  thinking: '',
  tools: [],
  state: 'done',
  finish: 'stop',
  error: undefined,
  request_id: undefined,
  bill: undefined,
};

const begun = addTurns(empty_thread, undefined, [question('Is it?'), answer]);
const answer_id = begun.leaf ?? '';

const withAnswer = (change: Partial<ModelAnswer>): Thread =>
  changeTurn(begun, answer_id, (turn) => (turn.role === 'assistant' ? { ...turn, ...change } : turn));

const answerOf = (thread: Thread) => thread.nodes.find(({ id }) => id === answer_id)?.turn;

describe('a thread that two browsers changed', () => {
  it('has the turns of both, and shows where one of them went on', () => {
    const theirs = addTurns(begun, begun.leaf, [question('And then?')]);
    expect(merged(begun, theirs).leaf).toBe(theirs.leaf);
    const mine = addTurns(begun, begun.leaf, [question('Why?')]);
    const both = merged(mine, theirs);
    expect(both.leaf).toBe(mine.leaf);
    expect(both.nodes.map(({ turn }) => turn.text).toSorted()).toEqual(['And then?', 'Is it?', 'Why?', 'Yes.']);
    expect(pathOf(both).map(({ turn }) => turn.text)).toEqual(['Is it?', 'Yes.', 'Why?']);
  });

  it('has the later vote, from whichever browser it comes, also where one was taken back', () => {
    const [up, down] = [withAnswer({ vote: 'up', voted_at: 1 }), withAnswer({ vote: 'down', voted_at: 2 })];
    const back = withAnswer({ vote: undefined, voted_at: 3 });
    for (const [mine, theirs, vote] of [
      [up, begun, 'up'],
      [begun, up, 'up'],
      [up, down, 'down'],
      [down, up, 'down'],
      [back, down, undefined],
      [down, back, undefined],
    ] as const)
      expect(answerOf(merged(mine, theirs))).toMatchObject({ vote, text: 'Yes.' });
  });

  it('has the end of an answer, and what it cost, also where one browser saw only its beginning', () => {
    const cost = { amount: '0.01', exact: '0.01', currency: 'USD' };
    const bill = { input_tokens: 1, output_tokens: 2, cost, total_ms: 3 };
    const stopped = withAnswer({ state: 'stopped', text: 'Y' });
    expect(answerOf(merged(stopped, begun))).toMatchObject({ state: 'done', text: 'Yes.' });
    expect(answerOf(merged(begun, withAnswer({ bill })))).toMatchObject({ bill });
    expect(answerOf(merged(withAnswer({ bill }), begun))).toMatchObject({ bill });
    expect(merged(begun, begun).nodes).toEqual(begun.nodes);
  });
});

describe('a title that two browsers chose', () => {
  const titled = (title: string, named_at?: number) => ({
    title,
    is_named: named_at !== undefined || title !== 'First words',
    named_at,
    threads: {},
  });

  it.each([
    ['First words', undefined, 'Chosen', 1, 'Chosen'],
    ['Chosen', 1, 'First words', undefined, 'Chosen'],
    ['Later', 2, 'Earlier', 1, 'Later'],
    ['Earlier', 1, 'Later', 2, 'Later'],
    ['Mine of an older page', undefined, 'Theirs of an older page', undefined, 'Theirs of an older page'],
  ])('of %s (%s) and %s (%s) is %s', (mine, mine_at, theirs, theirs_at, title) => {
    expect(mergedConversation(titled(mine, mine_at), titled(theirs, theirs_at)).title).toBe(title);
  });
});

describe('files of a conversation', () => {
  const file = (data: string, id?: string): AttachedFile => ({
    kind: 'document',
    name: `${data}.txt`,
    media_type: 'text/plain',
    data,
    size_bytes: 3,
    ...(id !== undefined && { id }),
  });
  const conversationOf = (...files: AttachedFile[]) => ({
    threads: {
      one: addTurns(empty_thread, undefined, [question('Look', files)]),
      two: addTurns(empty_thread, undefined, [question('Look', files)]),
    },
  });
  const filesOf = ({ threads }: { threads: Record<string, Thread> }) =>
    Object.values(threads).flatMap(({ nodes }) =>
      nodes.flatMap(({ turn }) => (turn.role === 'user' ? turn.files : [])),
    );

  it('get an id each, the same for the same content', () => {
    const files = filesOf(withFileIds(conversationOf(file('QUFB'), file('QkJC', 'b'), file('QkJC'))));
    const ids = files.map((each) => (each.kind === 'link' ? '' : each.id));
    expect(ids[0]).toMatch(/^[0-9a-f]{24}$/);
    expect(ids).toEqual([ids[0], 'b', 'b', ids[0], 'b', 'b']);
    const complete = conversationOf(file('QUFB', 'a'));
    expect(withFileIds(complete)).toBe(complete);
  });

  it('travel once each, beside the turns, and come back: from at hand, or loaded', async () => {
    const conversation = conversationOf(file('QUFB', 'a'), file('QkJC', 'b'));
    const { light, files } = withoutFiles(conversation);
    expect(Object.fromEntries(files)).toEqual({ a: 'QUFB', b: 'QkJC' });
    expect(JSON.stringify(light)).not.toMatch(/"data":"Q/);
    const loaded: string[] = [];
    const load = async (id: string) => {
      loaded.push(id);
      return 'QkJC';
    };
    expect(await withFiles(light, conversationOf(file('QUFB', 'a')), load)).toEqual(conversation);
    expect(loaded).toEqual(['b']);
  });

  it('that were lost stay as names, and are not sent again', async () => {
    const lost = await withFiles(withoutFiles(conversationOf(file('QUFB', 'a'))).light, undefined, async () => '');
    expect(filesOf(lost)).toMatchObject([{ name: 'QUFB.txt', data: '' }, { data: '' }]);
    expect([...withoutFiles(lost).files]).toEqual([]);
  });
});

describe('the list', () => {
  it('has a line for each conversation of both: the server’s where only that is new, none where it was deleted here', () => {
    const own = (id: string, version: number | undefined, is_sent: boolean) => ({ id, of: 'here', version, is_sent });
    const theirs = (id: string, version: number) => ({ id, of: 'there', version });
    const local = {
      lines: [
        own('same', 3, true),
        own('older', 3, true),
        own('changed', 3, false),
        own('never sent', undefined, false),
      ],
      removed: new Set(['removed']),
    };
    const server = [
      theirs('same', 3),
      theirs('older', 4),
      theirs('changed', 4),
      theirs('elsewhere', 1),
      theirs('removed', 2),
    ];
    const lines = joinedLines<{ id: string; of: string }>(local, server);
    expect(Object.fromEntries(lines.map(({ id, of }) => [id, of]))).toEqual({
      same: 'here',
      older: 'there',
      changed: 'here',
      'never sent': 'here',
      elsewhere: 'there',
    });
    expect(lines).toHaveLength(5);
  });
});
