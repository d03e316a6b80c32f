import { pipeline } from 'node:stream/promises';
import { ApiError } from '../errors.ts';
import { takeTempFiles, type RequestTempFiles, type TempFileParts } from '../files/temp-files.ts';
import { withSpool } from '../files/spool.ts';
import { assert } from '../lib/assert.ts';
import type { Prober } from '../storage/probe.ts';
import { probe_messages, type Probe } from '../storage/probe-result.ts';
import type { Call } from './endpoint.ts';
import type { Form, FormLimits } from './form.ts';

/** Forms with files, which lie on the disk while they are looked at. */

/** Reads the form of a call and calls `use` with it; its files are temporary, at the paths in the form. */
export async function withForm<T>(
  { config, limits }: TempFileParts,
  call: Call,
  form_limits: FormLimits,
  use: (form: Form<string>, temp_files: RequestTempFiles) => Promise<T>,
): Promise<T> {
  const { caller, readForm } = call;
  assert(readForm, 'an endpoint with a form can read it');
  const permit = takeTempFiles({ limits }, caller.account.id); // before the body is asked for
  try {
    return await withSpool(config.data_dir, async (spool) => {
      const form = await readForm(form_limits, (stream) => spool.add((file) => pipeline(stream, file)));
      return use(form, { open: async () => spool, gone: call.gone });
    });
  } finally {
    permit.release();
  }
}

/** Measures a file of a form by its bytes. Throws ApiError 422 naming its field. */
export async function measureFile(
  { prober }: { prober: Prober },
  { caller }: Pick<Call, 'caller'>,
  path: string,
  field: string,
): Promise<Probe> {
  const result = await prober.probeForCaller(caller.account.id, path);
  if (result.ok) return result.probe;
  throw new ApiError('invalid_input', `${field} ${probe_messages[result.reason]}`, { param: field });
}
