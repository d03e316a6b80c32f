import type { JsonObject, ProviderConfig } from '../../../src/catalog/model.ts';
import type { Adapter, RunRequest } from '../../../src/providers/provider.ts';
import type { Imitation, Reply } from '../imitations/imitation.ts';
import type { Expected } from './outcome.ts';

/**
 * A case of what every adapter of media has to show, against a faithful imitation of its provider. A test of one says
 *
 *     conformance({
 *       name: 'acme', adapter: acme, imitate: startAcme,           // imitations/acme.ts, made with startImitation
 *       run: { kind: 'image', model: 'acme/painter', input: { prompt: 'A bay' } },
 *       submit: { method: 'POST', path: '/v1/acme/painter', headers: { authorization: `Bearer ${secret}` }, json: {…} },
 *       pace: { per_minute: 600 },
 *       refusals: [['flagged', { status: 422, json: … }, { refused: 'content_policy_violation' }]],
 *       polls: [['died before its start', { poll: [{ json: … }] }, { not_started: 'unavailable' }]],
 *       …
 *     });
 *
 * and adds the tests that only this provider needs. As it is started, the imitation lets each run be seen
 * running once, and then done with a file that it serves itself (role `file`).
 */
export type Conformance = {
  name: string;
  adapter: Adapter;
  imitate(now: () => number): Promise<Imitation>;
  /** Settings of the provider beside its address and its key. */
  config?: Partial<ProviderConfig>;
  /** Behind the imitation's origin, as operators write it in `base_url`. */
  base_path?: string;
  run: Pick<RunRequest, 'kind' | 'model' | 'input'> & Partial<RunRequest>;
  /** The submit as the provider documents it; headers and JSON are compared as far as they are given. */
  submit: {
    method: string;
    path: string;
    query?: Record<string, string>;
    headers: Record<string, unknown>;
    json?: JsonObject;
  };
  /** It answers a submit with the files: nothing is polled. */
  synchronous?: boolean;
  /** Statuses that this provider means in another way than most. */
  statuses?: Record<number, Expected>;
  /** Answers to the submit that are no 2xx, or that are errors all the same: why, the answer, what it means. */
  refusals: [why: string, reply: Reply, expected: Expected][];
  /** Answers to polls, by the parts of the provider that they ask. */
  polls?: [why: string, replies: { poll?: Reply[]; result?: Reply[] }, expected: Expected][];
  /** A poll's answer with a status word that nobody has documented. */
  unknown_word?: Reply;
  /** Answers to a cancel, with their meanings. */
  cancels?: [why: string, reply: Reply, expected: 'stopped' | 'billed'][];
  cancel?: { method: string; path: RegExp };
  /** The rate at which this provider may be asked with one key. */
  pace?: { per_minute: number };
  /** A submit's answer whose links lead elsewhere, to `url`: the key must not follow them. */
  foreign_links?: (url: string) => Reply;
  /** Answers that end a run with a file at `url`, which is another origin: it is fetched without the key. */
  foreign_output?: (url: string) => { submit?: Reply; poll?: Reply[]; result?: Reply[] };
};
