import { expect, it } from 'vitest';
import { abortSignal, Stop, type StopSignal } from '../../src/lib/stop.ts';

const gone = new Error('gone');

it('a cancel signal calls each listener once with its reason, and the first reason counts', () => {
  const stop = new Stop();
  const heard: string[] = [];
  const listenAs = (name: string) => {
    const listener = { handleEvent: () => void heard.push(`${name} ${String(stop.reason)}`) };
    stop.addEventListener('abort', listener);
    return listener;
  };
  listenAs('a');
  const b = listenAs('b');
  listenAs('c');
  stop.removeEventListener('abort', b);
  stop.removeEventListener('abort', b);
  expect([stop.aborted, stop.reason]).toEqual([false, undefined]);
  stop.abort(gone);
  stop.abort(new Error('too late'));
  expect([stop.aborted, stop.reason]).toEqual([true, gone]);
  expect(heard).toEqual(['a Error: gone', 'c Error: gone']);
});

it('a listener of a cancel signal may remove itself and others while it is called', () => {
  const stop = new Stop();
  const heard: string[] = [];
  const listeners = ['a', 'b', 'c'].map((name) => ({
    handleEvent: () => {
      heard.push(name);
      for (const listener of listeners) stop.removeEventListener('abort', listener);
    },
  }));
  for (const listener of listeners) stop.addEventListener('abort', listener);
  stop.abort(gone);
  expect(heard).toEqual(['a', 'b', 'c']);
});

it('a cancel signal becomes an AbortSignal for code that needs one, before and after it fires', () => {
  const before = new Stop();
  const { signal } = before;
  expect(signal).toBeInstanceOf(AbortSignal);
  expect(before.signal, 'one for all').toBe(signal);
  expect(signal.aborted).toBe(false);
  before.abort(gone);
  expect([signal.aborted, signal.reason]).toEqual([true, gone]);
  const after = new Stop();
  after.abort(gone);
  expect([after.signal.aborted, after.signal.reason]).toEqual([true, gone]);
});

it('an AbortSignal is used as it is, and an object like one is listened to', () => {
  const { signal } = new AbortController();
  expect(abortSignal(signal)).toBe(signal);
  const stop = new Stop();
  const like: StopSignal = {
    get aborted() {
      return stop.aborted;
    },
    get reason() {
      return stop.reason;
    },
    addEventListener: (type, listener) => stop.addEventListener(type, listener),
    removeEventListener: (type, listener) => stop.removeEventListener(type, listener),
  };
  const heard = abortSignal(like);
  stop.abort(gone);
  expect([heard.aborted, heard.reason]).toEqual([true, gone]);
});
