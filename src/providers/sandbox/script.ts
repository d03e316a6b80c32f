/** Script of a sandbox run: the directives in its prompt, and its route's options. */
import { assert } from '../../lib/assert.ts';
import { parseDuration } from '../../lib/duration.ts';
import { type Json, NotStarted } from '../provider.ts';

const outcomes = ['done', 'fail', 'moderate', 'hang'] as const;

/** The end of a run that started; `hang`: never by itself. */
export type Outcome = (typeof outcomes)[number];

export type Script = {
  /** The prompt without its directives. */
  text: string;
  refuse: boolean;
  outcome: Outcome;
  /** Duration of the run; undefined: the usual one of its kind. */
  delay_ms: number | undefined;
};

const directive = /\[\[\s*(?:(fail before start|fail|moderate|hang)|delay\s+([0-9.]+(?:ms|s|m|h)))\s*\]\]/giu;
const longest_delay_ms = 24 * 3_600_000;

/**
 * The script of a prompt on a route with `options`. Directives combine; of two that contradict each
 * other the last one counts. What only resembles a directive stays text, as does a delay beyond `delay_ms_max`.
 */
export function readScript(
  prompt: string,
  options: { [key: string]: Json },
  delay_ms_max: number = longest_delay_ms,
): Script {
  const script: Script = { text: '', ...readBehaviour(options['behaviour'] ?? null) };
  script.text = prompt.replace(directive, (whole: string, word: string | undefined, delay: string | undefined) => {
    if (word === undefined) {
      const delay_ms = parseDelay(delay ?? '');
      if (delay_ms === undefined || delay_ms > delay_ms_max) return whole;
      script.delay_ms = delay_ms;
      return ' ';
    }
    const name = word.toLowerCase();
    if (name === 'fail before start') script.refuse = true;
    else if (name === 'fail' || name === 'moderate' || name === 'hang') script.outcome = name;
    return ' ';
  });
  return script;
}

/** An ending as a run's `ref` holds it. */
export function readOutcome(json: Json | undefined): Outcome {
  const outcome = outcomes.find((one) => one === json);
  assert(outcome, 'a run has an ending');
  return outcome;
}

/** The part of a script that a route's `options: { behaviour: { fail, delay } }` fixes. */
function readBehaviour(behaviour: Json): Omit<Script, 'text'> {
  const script: Omit<Script, 'text'> = { refuse: false, outcome: 'done', delay_ms: undefined };
  if (behaviour === null) return script;
  if (typeof behaviour !== 'object' || Array.isArray(behaviour)) throw badBehaviour();
  const { fail, delay, ...others } = behaviour;
  if (Object.keys(others).length > 0) throw badBehaviour();
  if (fail === 'before_start') script.refuse = true;
  else if (fail === 'after_start') script.outcome = 'fail';
  else if (fail !== undefined) throw badBehaviour();
  if (delay !== undefined) {
    script.delay_ms = typeof delay === 'string' ? parseDelay(delay) : undefined;
    if (script.delay_ms === undefined) throw badBehaviour();
  }
  return script;
}

function parseDelay(text: string): number | undefined {
  const delay_ms = parseDuration(text.toLowerCase());
  return delay_ms === undefined || delay_ms > longest_delay_ms ? undefined : delay_ms;
}

function badBehaviour(): NotStarted {
  const help = '"fail" is before_start or after_start, "delay" a duration such as 2s, at most 24h';
  return new NotStarted('refused', `The route's options.behaviour cannot be used: ${help}.`);
}
