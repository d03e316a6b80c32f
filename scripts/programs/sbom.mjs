// npm run sbom: writes what the program is made of, from its lock files, as CycloneDX documents. npm makes
// them itself and asks nobody. Plain JavaScript for Node 20.
//
//   npm run sbom -- [--out FOLDER]     the folder is sbom/ unless named
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { askNpm, packages, root } from '../lock-files.mjs';
import { readOptions } from '../options.mjs';

async function materialsOf({ folder }) {
  const words = ['sbom', '--sbom-format=cyclonedx', '--package-lock-only', '--offline'];
  const { answer, problem } = await askNpm(words, folder);
  if (answer?.bomFormat !== 'CycloneDX') throw new Error(`npm sbom failed in ${folder}: ${problem}`);
  // npm names it after the folder, which may have any name.
  const { name } = JSON.parse(readFileSync(join(root, folder, 'package.json'), 'utf8'));
  answer.metadata.component.name = name;
  return answer;
}

async function main() {
  const { out: folder } = readOptions({ out: { type: 'string', default: 'sbom' } });
  const out = resolve(root, folder);
  mkdirSync(out, { recursive: true });
  const all = await Promise.all(packages.map(materialsOf));
  for (const [index, part] of packages.entries()) {
    const materials = all[index];
    const file = join(out, `${part.name}.cdx.json`);
    writeFileSync(file, `${JSON.stringify(materials, null, 2)}\n`);
    console.log(`${file}: ${materials.components.length} packages`);
  }
}

try {
  await main();
} catch (error) {
  console.error(error.message);
  process.exitCode = 1;
}
