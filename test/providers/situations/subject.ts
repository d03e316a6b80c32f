import type { Adapter, RunRequest } from '../../../src/providers/provider.ts';
import type { Imitation, Reply } from '../imitations/imitation.ts';

/** Columns of the table in docs/providers.md. */
export const situations = [
  'ok',
  'fails',
  'moderated',
  '429 with Retry-After',
  '429 without',
  '5xx at submit',
  'hangs queued',
  'hangs working',
  'cancel queued',
  'cancel working',
  'unknown run',
  'result link dead',
] as const;

export type Situation = (typeof situations)[number];

/** Answers of a provider in a situation: replies by the part that is asked, or another imitation of it. */
export type Answers = { poll?: Reply[]; result?: Reply[]; imitate?: () => Promise<Imitation> };

/** A row of the table: a provider, and its own words for each situation. One that is left out does not occur there. */
export type Subject = {
  title: string;
  adapter: Adapter;
  imitate(now: () => number): Promise<Imitation>;
  /** Behind the origin of its imitation. */
  base_path?: string;
  run: Pick<RunRequest, 'kind' | 'model' | 'input'> & Partial<RunRequest>;
  /** It answers the submit with the files: there is nothing to poll. */
  synchronous?: true;
  /** Its answer to the submit of an unfit input. */
  moderated?: Reply;
  moderated_later?: Answers;
  fails?: Answers;
  /** Its answer at its limit, where it has words of its own for it. */
  full?: Reply;
  queued?: Answers;
  working?: Answers;
  unknown?: Answers;
  /** Its answer to a cancel of a run that waits, where that differs from the usual one of its imitation. */
  removed?: Reply;
  /** An imitation of it that never ends a run, where its adapter can stop one whose submit has no answer yet. */
  endless?: () => Promise<Imitation>;
};
