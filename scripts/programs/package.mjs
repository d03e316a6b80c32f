// npm run package: makes the package that npm install and npx take: JavaScript in dist/, the built dashboard, the SQL, the
// list of materials. Nothing is built where it is installed. Plain JavaScript for Node 20.
//
//   npm run package -- [--name @org/medley] [--repository URL] [--out FOLDER]     the folder is dist/ unless named
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { askNpm, root } from '../lock-files.mjs';
import { readOptions } from '../options.mjs';
import { makeManifest, makeShrinkwrap, readName, readRepository } from '../package-manifest.mjs';
import { finish, runScript, setUp } from '../setup.mjs';
import { forwardSignals } from '../setup-process.mjs';
import { buildInto } from '../web.mjs';

/** Things that the packed program reads at run time, beside dist/: paths of the repository, files or folders. */
const delivered = [
  'bin/medley.cjs',
  'scripts/node-version.cjs',
  'scripts/published.cjs',
  'scripts/programs/published.mjs',
  'scripts/service-flags.mjs',
  'scripts/setup-process.mjs',
  'sql/migrations',
  'sql/functions',
  'medley.schema.json',
  'medley.example.yaml',
  'README.md',
  'CHANGELOG.md',
  'SECURITY.md',
  'LICENSE',
];

const readJson = (path) => JSON.parse(readFileSync(join(root, path), 'utf8'));

/** Throws the sentence of a step that failed: what the step printed stands above it. */
function check(code, step) {
  if (code !== 0) throw Object.assign(new Error(`${step} failed (exit code ${code}).`), { exit_code: 1 });
}

/** Compiles src/ into dist/ of the stage, as deep as it was: paths to sql/ and web/dist/ stay what they are. */
async function compile(place, stage) {
  const config = join(stage, 'tsconfig.json');
  const options = {
    noEmit: false,
    rootDir: root,
    outDir: join(stage, 'emitted'),
    target: 'esnext',
    removeComments: true,
  };
  const include = [join(root, 'src/**/*.ts')];
  writeFileSync(
    config,
    JSON.stringify({ extends: join(root, 'tsconfig.json'), compilerOptions: options, include, exclude: [] }),
  );
  check(await runScript(root, place, 'test/node_modules/typescript/bin/tsc', ['-p', config]), 'Compiling');
  renameSync(join(stage, 'emitted', 'src'), join(stage, 'dist'));
  renameSync(join(stage, 'emitted', 'clients'), join(stage, 'clients')); // commands of callers use our client
  rmSync(join(stage, 'emitted'), { recursive: true });
  rmSync(config);
  const isData = (path) => statSync(path).isDirectory() || !path.endsWith('.ts');
  cpSync(join(root, 'src'), join(stage, 'dist'), { recursive: true, filter: isData });
}

/** Builds the dashboard for the stage alone: web/dist of the repository keeps files of earlier builds for running services. */
async function buildDashboard(place, stage) {
  const run = (script, words) => runScript(root, place, script, words, { cwd: root });
  check(await buildInto(root, join(stage, 'web/dist'), run), 'Building the dashboard');
}

async function fill(stage, place, manifest) {
  await buildDashboard(place, stage);
  await compile(place, stage);
  for (const path of delivered) cpSync(join(root, path), join(stage, path), { recursive: true });
  const readme = readFileSync(join(root, 'README.md'), 'utf8').replace(
    /(`npx |--global )@org\/medley\b/g, // the name that the page of this repository has
    `$1${manifest.name}`,
  );
  writeFileSync(join(stage, 'README.md'), readme);
  check(
    await runScript(root, place, 'scripts/sbom.mjs', ['--out', join(stage, 'sbom')], { onOutput: () => undefined }),
    'npm sbom',
  );
  for (const name of readdirSync(join(stage, 'sbom')))
    if (!/^(medley|dashboard)\.cdx\.json$/.test(name)) rmSync(join(stage, 'sbom', name));
  writeFileSync(join(stage, 'package.json'), `${JSON.stringify(manifest, null, 2)}\n`);
  const shrinkwrap = makeShrinkwrap(readJson('package-lock.json'), manifest);
  writeFileSync(join(stage, 'npm-shrinkwrap.json'), `${JSON.stringify(shrinkwrap, null, 2)}\n`);
}

async function pack(place, { name, repository, out }) {
  const manifest = makeManifest(readJson('package.json'), {
    name: readName(name),
    repository: await readRepository(root, repository),
  });
  const folder = resolve(root, out);
  mkdirSync(folder, { recursive: true });
  const stage = mkdtempSync(join(tmpdir(), 'medley-pack-'));
  try {
    await fill(stage, place, manifest);
    const words = ['pack', '--json', '--ignore-scripts', '--pack-destination', folder];
    const { answer, problem } = await askNpm(words, stage);
    // npm 12 answers an object by the package's name, earlier ones a list.
    const [packed] = Object.values(answer ?? {});
    if (packed?.filename === undefined) throw Object.assign(new Error(`npm pack failed: ${problem}`), { exit_code: 1 });
    const { size, unpackedSize, entryCount } = packed;
    const megabytes = (bytes) => `${(bytes / 1e6).toFixed(1)} MB`;
    console.log(
      `${join(folder, packed.filename.replace(/^@/, '').replaceAll('/', '-'))}: ${manifest.name} ${manifest.version}, ${entryCount} files, ${megabytes(size)}, unpacked ${megabytes(unpackedSize)}`,
    );
    if (manifest.repository === undefined)
      console.error(
        'It names no repository, which npm demands for provenance: add --repository https://… before you publish it.',
      );
    return 0;
  } finally {
    rmSync(stage, { recursive: true, force: true });
  }
}

const options = readOptions({
  name: { type: 'string' },
  repository: { type: 'string' },
  out: { type: 'string', default: 'dist' },
});

forwardSignals();
await finish(async () => {
  const place = await setUp(root, ['.', 'web', 'test']);
  try {
    return await pack(place, options);
  } catch (error) {
    if (error.exit_code === undefined) throw error;
    console.error(error.message);
    return error.exit_code;
  } finally {
    place.leave();
  }
});
