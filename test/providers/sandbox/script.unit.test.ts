import { describe, expect, it } from 'vitest';
import { NotStarted } from '../../../src/providers/provider.ts';
import { readScript } from '../../../src/providers/sandbox/script.ts';
import { workedMs } from '../../helpers/work.ts';

const plain = { refuse: false, outcome: 'done', delay_ms: undefined };

describe('a prompt', () => {
  it.each([
    ['a red bicycle', {}],
    ['[[delay 3s]] a red bicycle', { delay_ms: 3_000 }],
    ['a red [[DELAY 250ms]] bicycle', { delay_ms: 250 }],
    ['a red bicycle [[ delay  1.5m ]]', { delay_ms: 90_000 }],
    ['[[fail]] a red bicycle', { outcome: 'fail' }],
    ['[[moderate]] a red bicycle', { outcome: 'moderate' }],
    ['[[hang]] a red bicycle', { outcome: 'hang' }],
    ['[[fail before start]] a red bicycle', { refuse: true }],
    ['[[delay 2s]][[fail]] a red bicycle', { outcome: 'fail', delay_ms: 2_000 }],
    ['[[fail]] a red [[moderate]] bicycle', { outcome: 'moderate' }],
    ['[[delay 1s]] a red bicycle [[delay 2s]]', { delay_ms: 2_000 }],
    ['[[fail]][[fail before start]] a red bicycle', { outcome: 'fail', refuse: true }],
  ])('has its directives read: %s', (prompt, expected) => {
    const { text, ...script } = readScript(prompt, {});
    expect(script).toEqual({ ...plain, ...expected });
    expect(text.split(/\s+/).filter(Boolean)).toEqual(['a', 'red', 'bicycle']);
  });

  it.each([
    '[[delay]]',
    '[[delay 3]]',
    '[[delay 3x]]',
    '[[delay -3s]]',
    '[[delay 1..5s]]',
    '[[delay 25h]]',
    '[[failed]]',
    '[[fail after start]]',
    '[fail]',
    '[[fail]',
    '[[ ]]',
    '[[[',
  ])('has %s as text only', (prompt) => {
    expect(readScript(prompt, {})).toEqual({ ...plain, text: prompt });
  });

  it('is read at once when it is hostile', () => {
    const before_ms = workedMs();
    readScript('[[ '.repeat(300_000), {});
    readScript(`[[delay ${' '.repeat(300_000)}`, {});
    expect(workedMs() - before_ms).toBeLessThan(1_000);
  });
});

describe('options of a route', () => {
  it.each([
    [{ fail: 'before_start' }, { refuse: true }],
    [{ fail: 'after_start' }, { outcome: 'fail' }],
    [{ delay: '2s' }, { delay_ms: 2_000 }],
    [
      { fail: 'after_start', delay: '2s' },
      { outcome: 'fail', delay_ms: 2_000 },
    ],
  ])('are read: %j', (behaviour, expected) => {
    expect(readScript('x', { behaviour })).toEqual({ ...plain, text: 'x', ...expected });
  });

  it('yield to the prompt', () => {
    expect(readScript('[[delay 1s]]', { behaviour: { delay: '2s' } }).delay_ms).toBe(1_000);
  });

  it.each([[{ fail: 'later' }], [{ delay: 2 }], [{ delay: '2 days' }], [{ slow: true }], ['fail'], [['fail']]])(
    'refuse the run, and not as a simulation, when they are invalid: %j',
    (behaviour) => {
      let error: unknown;
      try {
        readScript('x', { behaviour });
      } catch (thrown) {
        error = thrown;
      }
      expect(error).toBeInstanceOf(NotStarted);
      expect(error).toMatchObject({ simulated: false, message: expect.stringContaining('options.behaviour') });
    },
  );
});
