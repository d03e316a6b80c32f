import { useQueryClient } from '@tanstack/react-query';
import { useCallback, useEffect, useRef, useState } from 'react';
import { announce, browser_store, listen } from './conversation-store.ts';
import { empty_answer, nextTurn, type Settings } from './conversation.ts';
import { mergedConversation } from './merge.ts';
import { atRest, titleOf, type SavedConversation } from './saved-conversation.ts';
import type { Synchroniser } from './server/synchroniser.ts';
import { conversations_key, useOwner, useSynchroniser } from './server/useServer.ts';
import { StoreProblem } from './tables.ts';
import { addTurns, changeTurn, empty_thread, goTo, isAnswering, newId, pathOf, pathTo, type Thread } from './thread.ts';
import type { Replay } from './replay/replay.ts';
import { useAnswers } from './useAnswers.ts';
import type { Draft } from './Composer.tsx';
import type { ModelAnswer, Turn, Vote } from './turn.ts';

type Threads = SavedConversation['threads'];

/** `id` is undefined until something was said. */
type Current = Pick<SavedConversation, 'title' | 'is_named' | 'named_at' | 'created_at' | 'threads' | 'source'> & {
  id: string | undefined;
};

const blank: Current = {
  id: undefined,
  title: '',
  is_named: false,
  named_at: undefined,
  created_at: 0,
  threads: {},
  source: undefined,
};

/** While an answer comes, it is saved this often. */
const saved_every_ms = 3_000;
const saved_soon_ms = 250;

type Options = {
  models: readonly string[];
  /** Of the boxes; they are saved with the conversation. */
  settings: Settings;
  /** With the values of variables. */
  sent_settings: Settings;
  /** The conversation that the address names. */
  id: string | undefined;
  /** Writes it there. */
  setId: (id: string | undefined) => void;
  /** A stored call to begin with, until something is asked: it is saved with that. */
  replay: Replay | undefined;
  /** One was opened. */
  onOpen: (conversation: SavedConversation) => void;
};

/** A conversation, saved in this browser as it goes on, also from several tabs. */
export function useConversation(options: Options) {
  const owner = useOwner();
  const [current, setCurrent] = useState(blank);
  const [notice, setNotice] = useState<string>();
  const latest = useRef({ current, options });
  latest.current.options = options;
  const update = useCallback((make: (before: Current) => Current) => {
    latest.current.current = make(begun(latest.current));
    setCurrent(latest.current.current);
  }, []);
  const { ask, stop, streamOf } = useAnswers();
  const synchroniser = useSynchroniser();
  const { saveSoon, saveNow, saveNoMore, problem } = useSaving({ owner, latest, update, synchroniser });

  const setThread = useCallback(
    (model: string, make: (thread: Thread) => Thread) => {
      update((before) => ({
        ...before,
        threads: { ...before.threads, [model]: make(threadIn(before.threads, model)) },
      }));
      saveSoon();
    },
    [update, saveSoon],
  );

  useOpening({ owner, id: options.id, latest, update, stop, saveNow, setNotice, synchroniser });
  useOtherTabs({ owner, latest, update, stop, setNotice });

  const begin = () => {
    setNotice(undefined);
    if (latest.current.current.id !== undefined) return;
    const id = newId();
    update((before) => ({ ...before, id, created_at: Date.now() }));
    options.setId(id);
  };

  const { threads, source } = begun({ current, options });
  return {
    id: current.id,
    threads,
    source,
    notice,
    problem,
    stop,
    streamOf,
    ...turnActs({ latest, setThread, ask, begin }),
    clear: () => {
      if (current.id === undefined) update(() => blank); // a stored call that was only looked at
      options.setId(undefined);
    },
    /** Leaves it without saving: it is deleted. */
    discard: () => {
      stop();
      saveNoMore();
      update(() => blank);
      options.setId(undefined);
    },
  };
}

type ActParts = {
  latest: Latest;
  setThread: (model: string, make: (thread: Thread) => Thread) => void;
  ask: ReturnType<typeof useAnswers>['ask'];
  begin: () => void;
};

/** Acts of a person in the conversation with a model. */
function turnActs({ latest, setThread, ask, begin }: ActParts) {
  const threadOf = (model: string) => threadIn(begun(latest.current).threads, model);
  const nodeOf = (model: string, id: string) => threadOf(model).nodes.find((node) => node.id === id);

  /** Adds turns below `parent`, the last of which is an answer to come, and asks for it. */
  const say = (model: string, parent: string | undefined, turns: Turn[]) => {
    begin();
    const { sent_settings: settings } = latest.current.options;
    setThread(model, (thread) => addTurns(thread, parent, [...turns, empty_answer]));
    const { nodes, leaf: answer_id = '' } = threadOf(model);
    const before = pathTo(nodes, answer_id).slice(0, -1);
    const conversation_id = latest.current.current.id;
    const show = (answer: ModelAnswer) => {
      if (latest.current.current.id !== conversation_id) return; // another one was opened
      setThread(model, (thread) =>
        changeTurn(thread, answer_id, (turn) => ({
          ...answer,
          ...(turn.role === 'assistant' && { vote: turn.vote, voted_at: turn.voted_at }),
        })),
      );
    };
    void ask({ id: answer_id, model, turns: before.map(({ turn }) => turn), settings, show });
  };

  return {
    send: (draft: Draft) => {
      for (const model of latest.current.options.models) {
        const path = pathOf(threadOf(model));
        const turn = nextTurn(
          path.map((node) => node.turn),
          draft.text,
          draft.files,
        );
        say(model, path.at(-1)?.id, [turn]);
      }
    },
    /** The answer to a message that has none. */
    answer: (model: string, id: string) => say(model, id, []),
    /** One more version of an answer. */
    regenerate: (model: string, id: string) => {
      const node = nodeOf(model, id);
      if (node) say(model, node.parent, []);
    },
    /** One more version of a message, with its answer. */
    edit: (model: string, id: string, text: string) => {
      const node = nodeOf(model, id);
      if (node && node.turn.role !== 'assistant') say(model, node.parent, [{ ...node.turn, text }]);
    },
    show: (model: string, id: string) => setThread(model, (thread) => goTo(thread, id)),
    vote: (model: string, id: string, vote: Vote | undefined) =>
      setThread(model, (thread) =>
        changeTurn(thread, id, (turn) => (turn.role === 'assistant' ? { ...turn, vote, voted_at: Date.now() } : turn)),
      ),
  };
}

type Latest = { current: { current: Current; options: Options } };
type Update = (make: (before: Current) => Current) => void;

function threadIn(threads: Threads, model: string): Thread {
  return threads[model] ?? empty_thread;
}

/** The conversation; one in which nothing was asked begins with a stored call, the same for each of its models. */
function begun({ current, options: { replay, models } }: Latest['current']): Current {
  if (current.id !== undefined || !replay) return current;
  const threads = models.map((id): [string, Thread] => [
    id,
    current.threads[id] ?? (id === replay.model ? replay.exchange : replay.request),
  ]);
  return { ...current, source: replay.source, threads: Object.fromEntries(threads) };
}

function isBusy({ threads }: Current): boolean {
  return Object.values(threads).some(isAnswering);
}

function savedOf({ current, options }: Latest['current']): SavedConversation | undefined {
  const { id, title, is_named, named_at, created_at, threads, source } = current;
  if (id === undefined || Object.keys(threads).length === 0) return undefined;
  return {
    id,
    title: is_named ? title : titleOf(threads),
    is_named,
    named_at,
    models: [...options.models],
    settings: options.settings,
    threads,
    source,
    created_at,
    updated_at: Date.now(),
  };
}

type SavingParts = { owner: string; latest: Latest; update: Update; synchroniser: Synchroniser };

function useSaving({ owner, latest, update, synchroniser }: SavingParts) {
  const [problem, setProblem] = useState<StoreProblem>();
  const queries = useQueryClient();
  const timer = useRef<number>(undefined);

  const save = useCallback(
    async (conversation: SavedConversation) => {
      try {
        const both = await browser_store.save(owner, conversation);
        setProblem(undefined);
        announce({ owner, kind: 'saved', ids: [both.id] });
        const { current } = latest.current;
        if (current.id === both.id && !isBusy(current)) {
          update((before) => ({ ...before, title: both.title, threads: withMore(before, both) }));
        }
        synchroniser.sendSoon({ is_busy: isBusy(latest.current.current) });
        await queries.invalidateQueries({ queryKey: conversations_key(owner) });
      } catch (error) {
        if (error instanceof StoreProblem) setProblem(error);
        else throw error;
      }
    },
    [owner, latest, update, synchroniser, queries],
  );

  const saveNow = useCallback(() => {
    if (timer.current === undefined) return; // nothing has changed
    window.clearTimeout(timer.current);
    timer.current = undefined;
    const conversation = savedOf(latest.current);
    if (conversation) void save(conversation);
  }, [latest, save]);

  const saveSoon = useCallback(() => {
    if (isBusy(latest.current.current)) {
      timer.current ??= window.setTimeout(saveNow, saved_every_ms);
      return;
    }
    // The end of an answer waits for no save in between: what a closed page still has to save may be lost.
    window.clearTimeout(timer.current);
    timer.current = window.setTimeout(saveNow, saved_soon_ms);
  }, [latest, saveNow]);

  const saveNoMore = useCallback(() => {
    window.clearTimeout(timer.current);
    timer.current = undefined;
  }, []);

  useEffect(() => {
    window.addEventListener('pagehide', saveNow);
    return () => {
      window.removeEventListener('pagehide', saveNow);
      saveNow();
    };
  }, [saveNow]);
  return { saveSoon, saveNow, saveNoMore, problem };
}

/** The threads of `before` with what another tab has added; the same object if that is nothing. */
function withMore(before: Current, both: SavedConversation): Threads {
  const count = (threads: Threads) => Object.values(threads).reduce((sum, { nodes }) => sum + nodes.length, 0);
  return count(both.threads) === count(before.threads) ? before.threads : both.threads;
}

type OpeningParts = {
  owner: string;
  id: string | undefined;
  latest: Latest;
  update: Update;
  stop: () => void;
  saveNow: () => void;
  setNotice: (notice: string | undefined) => void;
  synchroniser: Synchroniser;
};

/** Opens the conversation that the address names, when it names another one. */
function useOpening({ owner, id, latest, update, stop, saveNow, setNotice, synchroniser }: OpeningParts) {
  useEffect(() => {
    synchroniser.open_id = id;
    if (id === latest.current.current.id) return undefined;
    stop();
    saveNow();
    update(() => blank);
    setNotice(undefined);
    if (id === undefined) return undefined;
    let is_gone = false;
    const load = async () => {
      // Where this browser saves nothing, the server may have it.
      const saved = await browser_store.load(owner, id).catch(() => undefined);
      // What another browser has added since is joined with what is shown here.
      if (saved) synchroniser.bring(id).catch(() => undefined);
      return saved ?? synchroniser.bring(id);
    };
    load().then(
      (saved) => {
        if (is_gone) return;
        if (!saved) return setNotice('This conversation is not in this browser, or no longer.');
        const rested = atRest(saved);
        update(() => ({ ...rested }));
        return latest.current.options.onOpen(rested);
      },
      (error: unknown) => !is_gone && setNotice(error instanceof Error ? error.message : String(error)),
    );
    return () => {
      is_gone = true;
    };
  }, [owner, id, latest, update, stop, saveNow, setNotice, synchroniser]);
}

type OtherTabsParts = Pick<OpeningParts, 'owner' | 'latest' | 'update' | 'stop' | 'setNotice'>;

/** Takes over what other tabs and browsers add to the conversation, and that they delete it. */
function useOtherTabs({ owner, latest, update, stop, setNotice }: OtherTabsParts) {
  const queries = useQueryClient();
  useEffect(
    () =>
      listen((change) => {
        if (change.owner !== owner) return;
        void queries.invalidateQueries({ queryKey: conversations_key(owner) });
        const { id } = latest.current.current;
        if (id === undefined || !change.ids.includes(id)) return;
        if (change.kind === 'removed') {
          stop();
          update(() => blank);
          latest.current.options.setId(undefined);
          setNotice('This conversation was deleted in another tab or browser.');
          return;
        }
        const takeOver = async () => {
          const theirs = await browser_store.load(owner, id);
          const mine = savedOf(latest.current);
          if (!theirs || mine?.id !== id || isBusy(latest.current.current)) return;
          const { title, is_named, named_at, threads } = mergedConversation(mine, atRest(theirs));
          update((before) => ({ ...before, title, is_named, named_at, threads }));
        };
        takeOver().catch(() => undefined); // it is merged when this tab saves
      }),
    [owner, latest, update, stop, setNotice, queries],
  );
}
export type Conversation = ReturnType<typeof useConversation>;
