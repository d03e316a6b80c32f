import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { checkCatalogFile } from '../../src/catalog/catalog.ts';
import { adapterFacts } from '../../src/providers/facts.ts';
import { adapters } from '../../src/providers/index.ts';

/** Returns the mistakes of a medley.yaml that is a part of another file. */
export async function checkCatalogText(text: string): Promise<string[]> {
  const folder = mkdtempSync(join(tmpdir(), 'medley-deploy-'));
  try {
    const file = join(folder, 'medley.yaml');
    writeFileSync(file, text);
    const { errors } = await checkCatalogFile(file, adapterFacts(adapters));
    return errors.filter((error) => !/S3_(ACCESS|SECRET)_KEY/.test(error)); // who deploys it has them
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
