import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { S3Imitation, type Fault } from '../storage/s3/imitation.ts';
import { storageYaml } from '../storage/s3/subject.ts';

/** The bucket with the files of a run, and what is wrong with it at the moment. */
export type Bucket = {
  /** The line of medley.yaml that names it. */
  yaml(): Promise<string>;
  /** Everything that is asked of it has this trouble for so long. */
  trouble(fault: Fault, duration_ms: number): Promise<void>;
  stop(): Promise<void>;
};

/** Starts the bucket of a run. Its objects are files, too, so that a later process finds them (`--resume`). */
export async function startBucket(run_folder: string): Promise<Bucket> {
  const folder = join(run_folder, 'bucket');
  mkdirSync(folder, { recursive: true });
  const imitation = await S3Imitation.start();
  for (const name of readdirSync(folder)) {
    const { bytes, ...facts } = JSON.parse(readFileSync(join(folder, name), 'utf8'));
    imitation.objects.set(decodeURIComponent(name), { ...facts, bytes: Buffer.from(bytes, 'base64') });
  }
  const set = imitation.objects.set.bind(imitation.objects);
  imitation.objects.set = (key, object) => {
    const text = JSON.stringify({ ...object, bytes: object.bytes.toString('base64') });
    writeFileSync(join(folder, encodeURIComponent(key)), text);
    return set(key, object);
  };
  let troubles = 0;
  return {
    yaml: () => storageYaml(imitation, run_folder),
    trouble: async (fault, duration_ms) => {
      const own = ++troubles;
      imitation.fault = () => fault;
      await sleep(duration_ms);
      if (own === troubles) imitation.fault = () => undefined;
    },
    stop: () => imitation.stop(),
  };
}
