import { join } from 'node:path';
import type { App } from '../app.ts';
import { ApiError } from '../errors.ts';
import { spool, type Spooled } from '../files/spool.ts';
import { assert } from '../lib/assert.ts';
import type { Probe, ProbeFailure } from '../storage/probe-result.ts';
import { probeForCaller } from '../storage/probe.ts';
import type { Call } from './endpoint.ts';
import type { Form, FormLimits } from './form.ts';

/** Forms with files, which lie on the disk while they are looked at. */

/** Reads the form of a call and does `use` with it; its files are at the paths it is given, and gone afterwards. */
export async function withForm<T>(
  app: App,
  { caller, readForm }: Call,
  limits: FormLimits,
  use: (form: Form<string>) => Promise<T>,
): Promise<T> {
  assert(readForm, 'an endpoint with a form can read it');
  const leave = enter(app, caller.account.id);
  const spooled: Spooled[] = [];
  try {
    const form = await readForm(limits, async (stream) => {
      const file = await spool(join(app.config.data_dir, 'spool'), stream);
      spooled.push(file);
      return file.path;
    });
    return await use(form);
  } finally {
    leave();
    for (const file of spooled) await file.remove();
  }
}

const at_once_per_account = 8;
const at_once = 64;

const uploading = new WeakMap<App, Map<string, number>>();

/** Uploads under way lie on the disk, before anything counts them: so many at once, and no more. */
function enter(app: App, account_id: string): () => void {
  const counts = uploading.get(app) ?? new Map<string, number>();
  uploading.set(app, counts);
  const own = counts.get(account_id) ?? 0;
  const all = [...counts.values()].reduce((sum, count) => sum + count, 0);
  if (own >= at_once_per_account || all >= at_once) {
    const message = 'Too many uploads are under way. Try again when one of them has ended.';
    throw new ApiError('rate_limit', message, { headers: { 'retry-after': '1' } });
  }
  counts.set(account_id, own + 1);
  return () => {
    const left = (counts.get(account_id) ?? 1) - 1;
    if (left > 0) counts.set(account_id, left);
    else counts.delete(account_id);
  };
}

const complaints: Record<ProbeFailure, string> = {
  empty: 'is empty.',
  unrecognized: 'is of no known image, audio or video format.',
  truncated: 'is cut off: it ends before its own structure does.',
  damaged: 'is damaged: it cannot be read.',
  too_large: 'says that more of it must be held in memory than any honest file needs.',
  timeout: 'took too long to be measured.',
  crashed: 'could not be measured.',
};

/** What a file of a form is by its bytes. Throws ApiError 422 naming its field. */
export async function measureFile({ caller }: Call, path: string, field: string): Promise<Probe> {
  const result = await probeForCaller(caller.account.id, path);
  if (result.ok) return result.probe;
  throw new ApiError('invalid_input', `${field} ${complaints[result.reason]}`, { param: field });
}
