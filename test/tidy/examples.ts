/** A text that a rule must catch (`at` this place) or let pass, with the files that it needs. */
export type Example = { rule: string; why: string; files: Record<string, string>; at?: string };

const lines = (count: number): string => '  work();\n'.repeat(count);
const owned =
  '-- module: tasks\ncreate table tasks (id text);\n-- module: money\ncreate function money_hold(a int) returns int';

/** Texts that break one rule each, at one place. */
export const bad: readonly Example[] = [
  { rule: 'syntax', why: 'it does not parse', files: { 'src/lib/a.ts': 'const = 1;' }, at: 'src/lib/a.ts:1' },
  { rule: 'modules', why: 'a folder is not in the list', files: { 'src/helpers/a.ts': '' }, at: 'src/helpers/a.ts:1' },
  { rule: 'modules', why: 'a file in src/ is not in the list', files: { 'src/misc.ts': '' }, at: 'src/misc.ts:1' },
  {
    rule: 'module order',
    why: 'money asks tasks',
    files: { 'src/money/a.ts': "\nimport { b } from '../tasks/b.ts';", 'src/tasks/b.ts': '' },
    at: 'src/money/a.ts:2',
  },
  {
    rule: 'module order',
    why: 'a type is an import too',
    files: { 'src/lib/a.ts': "import type { E } from '../errors.ts';", 'src/errors.ts': '' },
    at: 'src/lib/a.ts:1',
  },
  {
    rule: 'module order',
    why: 'so is a type imported in place',
    files: { 'src/lib/a.ts': "type E = import('../errors.ts').E;", 'src/errors.ts': '' },
    at: 'src/lib/a.ts:1',
  },
  {
    rule: 'module order',
    why: 'so is a late import',
    files: { 'src/lib/a.ts': "const e = await import('../errors.ts');", 'src/errors.ts': '' },
    at: 'src/lib/a.ts:1',
  },
  {
    rule: 'module order',
    why: 'so is what is handed on',
    files: { 'src/lib/a.ts': "export { e } from '../errors.ts';", 'src/errors.ts': '' },
    at: 'src/lib/a.ts:1',
  },
  {
    rule: 'module order',
    why: 'src asks test',
    files: { 'src/app.ts': "export * from '../test/helpers/a.ts';", 'test/helpers/a.ts': '' },
    at: 'src/app.ts:1',
  },
  {
    rule: 'import cycle',
    why: 'two files ask each other',
    files: { 'src/lib/a.ts': "import './b.ts';", 'src/lib/b.ts': "import type { A } from './a.ts';" },
    at: 'src/lib/b.ts:1',
  },
  {
    rule: 'import cycle',
    why: 'two files of a page ask each other',
    files: {
      'web/src/pages/keys/Keys.tsx': "import { Table } from './Table.tsx';",
      'web/src/pages/keys/Table.tsx': "\nimport type { Row } from './Keys.tsx';",
    },
    at: 'web/src/pages/keys/Table.tsx:2',
  },
  {
    rule: 'module order',
    why: 'what pages share asks a page',
    files: { 'web/src/ui/a.tsx': "import { Keys } from '../pages/keys/Keys.tsx';", 'web/src/pages/keys/Keys.tsx': '' },
    at: 'web/src/ui/a.tsx:1',
  },
  {
    rule: 'module order',
    why: 'a page asks the service for more than types of answers',
    files: { 'web/src/ui/a.tsx': "import { money } from '../../../src/money/money.ts';", 'src/money/money.ts': '' },
    at: 'web/src/ui/a.tsx:1',
  },
  {
    rule: 'modules',
    why: 'a page is not in the list',
    files: { 'web/src/pages/misc/a.tsx': '' },
    at: 'web/src/pages/misc/a.tsx:1',
  },
  {
    rule: 'whole app',
    why: 'an endpoint takes everything',
    files: { 'src/app.ts': '', 'src/api/a.ts': "\nimport type { App } from '../app.ts';" },
    at: 'src/api/a.ts:2',
  },
  ...holding(),
  {
    rule: 'unused file',
    why: 'only a test imports it',
    files: { 'src/main.ts': '', 'src/lib/a.ts': '', 'test/lib/a.test.ts': "import '../../src/lib/a.ts';" },
    at: 'src/lib/a.ts:1',
  },
  {
    rule: 'unused file',
    why: 'only it imports itself',
    files: { 'src/main.ts': "import './app.ts';", 'src/app.ts': '', 'src/lib/a.ts': "import './a.ts';" },
    at: 'src/lib/a.ts:1',
  },
  {
    rule: 'table owner',
    why: 'nobody owns it',
    files: { 'sql/migrations/0001_a.sql': 'create table a (b int);' },
    at: 'sql/migrations/0001_a.sql:1',
  },
  {
    rule: 'table owner',
    why: 'its module does not exist',
    files: { 'sql/migrations/0001_a.sql': '-- module: attic\ncreate or replace function a() returns int' },
    at: 'sql/migrations/0001_a.sql:2',
  },
  ...functionFiles(),
  ...foreignSql(),
  ...foreignFunctions(),
  ...renamedTable(),
  ...floats(),
  { rule: 'environment', why: 'process.env', files: { 'src/app.ts': '\nf(process.env.PORT);' }, at: 'src/app.ts:2' },
  {
    rule: 'environment',
    why: "process['env']",
    files: { 'src/app.ts': "f(process['env'].PORT);" },
    at: 'src/app.ts:1',
  },
  {
    rule: 'environment',
    why: 'globalThis.process',
    files: { 'src/app.ts': 'f(globalThis.process.env);' },
    at: 'src/app.ts:1',
  },
  {
    rule: 'environment',
    why: 'import of env',
    files: { 'src/app.ts': "import { env } from 'node:process';" },
    at: 'src/app.ts:1',
  },
  { rule: 'environment', why: 'taken apart', files: { 'src/app.ts': 'const { env } = process;' }, at: 'src/app.ts:1' },
  {
    rule: 'provider name',
    why: 'a comparison in another module',
    files: { 'src/providers/adapters/acme/adapter.ts': '', 'src/tasks/a.ts': "if (name === 'acme') work();" },
    at: 'src/tasks/a.ts:1',
  },
  {
    rule: 'provider name',
    why: 'a type',
    files: { 'src/providers/adapters/acme/adapter.ts': '', 'src/app.ts': "type Kind = 'acme';" },
    at: 'src/app.ts:1',
  },
  {
    rule: 'provider name',
    why: 'the sandbox',
    files: { 'src/providers/sandbox/adapter.ts': '', 'src/app.ts': "f('sandbox');" },
    at: 'src/app.ts:1',
  },
  {
    rule: 'pgboss tables',
    why: 'in another file of its module',
    files: { 'src/queue/a.ts': 'query(`select 1 from ${a} join pgboss.job`)' },
    at: 'src/queue/a.ts:1',
  },
  {
    rule: 'style name',
    why: 'a comparison outside its folder',
    files: { 'src/styles/acme/codec.ts': '', 'src/chat/a.ts': "\nif (style.name === 'acme') work();" },
    at: 'src/chat/a.ts:2',
  },
  {
    rule: 'style name',
    why: 'a comparison in the folder of another style',
    files: {
      'src/styles/acme/codec.ts': '',
      'src/styles/other/codec.ts': "const field = style.name !== 'acme' ? 'stop' : 'end';",
    },
    at: 'src/styles/other/codec.ts:1',
  },
  {
    rule: 'style name',
    why: 'a case',
    files: { 'src/styles/acme/codec.ts': '', 'src/styles/relay.ts': "switch (name) {\n  case 'acme':\n}" },
    at: 'src/styles/relay.ts:2',
  },
  {
    rule: 'style name',
    why: 'a list that is searched',
    files: { 'src/styles/acme/codec.ts': '', 'src/chat/a.ts': "const is_short = ['acme'].includes(name);" },
    at: 'src/chat/a.ts:1',
  },
  {
    rule: 'style name',
    why: 'a table',
    files: {
      'src/styles/acme/codec.ts': '',
      'src/styles/other/codec.ts': '',
      'src/chat/a.ts': 'const limits = { acme: 1, other: 2 };',
    },
    at: 'src/chat/a.ts:1',
  },
  ...coinedWords(),
  {
    rule: 'docstring',
    why: 'a question',
    files: { 'src/lib/a.ts': '\n/** What it costs. */\nconst cost = 1;' },
    at: 'src/lib/a.ts:2',
  },
  {
    rule: 'docstring',
    why: 'a question in a test',
    files: { 'test/chat/a.ts': '\n/** Who pays. */\nconst cost = 1;' },
    at: 'test/chat/a.ts:2',
  },
  {
    rule: 'docstring',
    why: 'half a sentence about a public function',
    files: { 'src/chat/a.ts': '\n/** Undefined if nobody pays. */\nexport async function payerOf() {}' },
    at: 'src/chat/a.ts:2',
  },
  {
    rule: 'docstring',
    why: 'a question on the second line',
    files: { 'web/src/a.ts': '/**\n * Whether it is open.\n */\nlet is_open = true;' },
    at: 'web/src/a.ts:1',
  },
  { rule: 'types', why: 'any', files: { 'src/lib/a.ts': 'let a: any;' }, at: 'src/lib/a.ts:1' },
  { rule: 'types', why: 'any in a test', files: { 'test/lib/a.test.ts': 'f(a as any);' }, at: 'test/lib/a.test.ts:1' },
  { rule: 'types', why: 'a double cast', files: { 'src/lib/a.ts': 'f(a as unknown as B);' }, at: 'src/lib/a.ts:1' },
  { rule: 'types', why: 'a cast to never', files: { 'src/lib/a.ts': 'f(a as never);' }, at: 'src/lib/a.ts:1' },
  {
    rule: 'types',
    why: 'a silenced line',
    files: { 'src/lib/a.ts': `\n// ${'@ts-'}ignore\nf();` },
    at: 'src/lib/a.ts:2',
  },
  {
    rule: 'function length',
    why: '71 lines',
    files: { 'src/lib/a.ts': `\nexport function long() {\n${lines(69)}}\n` },
    at: 'src/lib/a.ts:2',
  },
  {
    rule: 'function length',
    why: 'an arrow, in a script',
    files: { 'scripts/a.mjs': `const long = () => {\n${lines(70)}};\n` },
    at: 'scripts/a.mjs:1',
  },
  { rule: 'file length', why: '501 lines', files: { 'src/lib/a.ts': lines(501) }, at: 'src/lib/a.ts:501' },
  ...sleeping(),
  {
    rule: 'fixed sleep',
    why: 'half a second',
    files: { 'test/a.test.ts': '\nawait sleep(500);' },
    at: 'test/a.test.ts:2',
  },
  {
    rule: 'fixed sleep',
    why: 'a promise of a timer',
    files: { 'test/a.test.ts': 'await new Promise((resolve) => setTimeout(resolve, 1_100));' },
    at: 'test/a.test.ts:1',
  },
  {
    rule: 'leftover mark',
    why: 'in a comment',
    files: { 'src/lib/a.ts': `\n// ${'TO'}${'DO'}: more` },
    at: 'src/lib/a.ts:2',
  },
  { rule: 'leftover mark', why: 'in a document', files: { 'README.md': `# A\n${'FIX'}${'ME'}` }, at: 'README.md:2' },
  {
    rule: 'machine path',
    why: 'a home',
    files: { 'scripts/a.mjs': `f('/${'home'}/ann/medley');` },
    at: 'scripts/a.mjs:1',
  },
  { rule: 'machine path', why: 'a checkout', files: { 'docs/a.md': `# A\ncd /${'work'}/main` }, at: 'docs/a.md:2' },
  {
    rule: 'registry host',
    why: 'in a lock file',
    files: { 'package-lock.json': `\n"https://${'registry'}.example.org/pg.tgz"` },
    at: 'package-lock.json:2',
  },
  {
    rule: 'registry host',
    why: 'in a script',
    files: { 'scripts/a.mjs': `f('${'npm'}${'mirror'}.com')` },
    at: 'scripts/a.mjs:1',
  },
  { rule: 'one title', why: 'two', files: { 'README.md': '# A\n\n# B\n' }, at: 'README.md:3' },
  { rule: 'one title', why: 'none', files: { 'CHANGELOG.md': '## A\n' }, at: 'CHANGELOG.md:1' },
];

function foreignSql(): Example[] {
  const spots: [string, string][] = [
    ['after from', "query('select * from tasks')"],
    ['after join', 'query(`select 1\n from accounts a join tasks t on true`)'],
    ['in a list', 'query(`select 1 from unnest($1, $2) u, tasks t`)'],
    ['with its schema', "query('select 1 from public.tasks')"],
    ['after into', "query('INSERT INTO tasks (id) values ($1)')"],
    ['after update', 'query(`update tasks set id = ${id}`)'],
    ['after delete from', "query('delete from only tasks')"],
    ['in a fragment', "const where = ' from tasks where id = $1';"],
    ['beside a placeholder', 'query(`select ${columns} from tasks`)'],
    ['in the query builder', "db.selectFrom('tasks as t').execute();"],
    ['as a function', "query('select money_hold($1)')"],
    ['in the job queue', "query('select 1 from pgboss.job')"],
  ];
  return spots.map(([why, text]) => ({
    rule: 'sql owner',
    why,
    files: { 'sql/migrations/0001_a.sql': owned, 'src/accounts/a.ts': text },
    at: `src/accounts/a.ts:${why === 'after join' ? 2 : 1}`,
  }));
}

/** A function that is in the folder of its module, and one that stays for older nodes. */
function foreignFunctions(): Example[] {
  return ['sql/functions/money/a.sql', 'sql/functions/former/a.sql'].map((path) => ({
    rule: 'sql owner',
    why: path,
    files: { [path]: '', 'src/accounts/a.ts': "query('select a($1)')" },
    at: 'src/accounts/a.ts:1',
  }));
}

/** A table by its new name, and by the old one, which is a view for older nodes. */
function renamedTable(): Example[] {
  const renamed =
    '-- module: tasks\nalter table jobs rename to tasks;\n-- module: former\ncreate view jobs as select 1;';
  return ['tasks', 'jobs'].map((name) => ({
    rule: 'sql owner',
    why: `renamed: ${name}`,
    files: { 'sql/migrations/0001_a.sql': renamed, 'src/accounts/a.ts': `query('select id from ${name}')` },
    at: 'src/accounts/a.ts:1',
  }));
}

function coinedWords(): Example[] {
  const spots = [
    'const told = 1;',
    'function given() {}',
    'const f = (wanted: string) => wanted;',
    'const { response: said } = answer;',
    'type Kept = string;',
    'type Task = { made: boolean };',
    'class Task { #found = 1; }',
    'const pledge = 1;',
    'function pourInto() {}',
    'const last_film = 1;',
    'type Engine = { hasten(): void };',
    'class Health { giveBack() {} }',
    'const startBoss = 1;',
    'type Turns = string[];',
    'const whileAway = 1;',
  ];
  const places = [
    ...spots.map((text) => [text, 'web/src/a.ts'] as const),
    ['const asked = [];', 'test/lib/a.test.ts'] as const,
  ];
  return places.map(([text, path]) => ({
    rule: 'coined word',
    why: `${text} in ${path}`,
    files: { [path]: `\n${text}` },
    at: `${path}:2`,
  }));
}

function functionFiles(): Example[] {
  const spots = [
    ['in the folder of no module', 'sql/functions/attic/a.sql', '-- Does.\ncreate or replace function a() returns int'],
    ['without a comment', 'sql/functions/money/a.sql', 'create or replace function a() returns int'],
    ['of another name', 'sql/functions/money/a.sql', '-- Does.\ncreate or replace function b() returns int'],
    ['that cannot be applied again', 'sql/functions/money/a.sql', '-- Does.\ncreate function a() returns int'],
    ['beside a table', 'sql/functions/money/a.sql', '-- Does.\ncreate or replace function a()\ncreate table b ();'],
    [
      'whose body is read at once',
      'sql/functions/money/a.sql',
      '-- Does.\ncreate or replace function a()\nreturn b();',
    ],
  ] as const;
  return spots.map(([why, path, text]) => ({ rule: 'sql function', why, files: { [path]: text }, at: `${path}:1` }));
}

function holding(): Example[] {
  const spots: [string, string][] = [
    ['a call', 'await app.holds.hold(request);'],
    ['a call by another spelling', "await app['holds'].hold(request);"],
    ['a call of what may be missing', 'app?.holds?.close(request);'],
    ['a handing on', 'settleLater(app.holds);'],
    ['a method handed on', 'settleLater(app.holds.close);'],
    ['a name for it', 'const money = app.holds;'],
    ['a taking apart', 'function settle({ holds }: App) {}'],
    ['a taking apart under another name', 'const { holds: money } = app;'],
    ['its type', "type Request = Parameters<App['holds']['hold']>[0];"],
    ['an import', "import { reserveInMemory } from '../money/reservations.ts';"],
    ['an import beside a type', "import { hold, type HoldRequest } from '../money/holds.ts';"],
    ['a late import', "await import('../money/holds.ts');"],
    ['a handing on from its file', "export { close } from '../money/holds.ts';"],
  ];
  return spots.map(([why, text]) => ({
    rule: 'money/holds',
    why,
    files: { 'src/tasks/step.ts': text, 'src/money/holds.ts': '', 'src/money/reservations.ts': '' },
    at: 'src/tasks/step.ts:1',
  }));
}

function floats(): Example[] {
  const spots = [
    'Number(a)',
    'parseFloat(a)',
    'Number.parseFloat(a)',
    'parseInt(a)',
    'a.toFixed(2)',
    'Math.round(a)',
    '+a',
    '0.5',
    '1e-6',
    '2.0',
  ];
  return spots.map((text) => ({
    rule: 'money',
    why: text,
    files: { 'src/money/a.ts': `\nf(${text});` },
    at: 'src/money/a.ts:2',
  }));
}

function sleeping(): Example[] {
  const spots = [
    `it.${'skip'}('a')`,
    `describe.${'only'}('a')`,
    `test.concurrent.${'todo'}('a')`,
    "it('a', { skip: true }, f)",
    "xit('a', f)",
  ];
  return spots.map((text) => ({
    rule: 'sleeping test',
    why: text,
    files: { 'test/lib/a.test.ts': `\n${text};` },
    at: 'test/lib/a.test.ts:2',
  }));
}

/** Texts that look like a breach and are none. */
export const good: readonly Example[] = [
  {
    rule: 'module order',
    why: 'an earlier module',
    files: { 'src/tasks/a.ts': "import '../lib/b.ts';", 'src/lib/b.ts': '' },
  },
  {
    rule: 'module order',
    why: 'the same module',
    files: { 'src/tasks/a.ts': "import './b.ts';", 'src/tasks/b.ts': '' },
  },
  { rule: 'module order', why: 'a package', files: { 'src/lib/a.ts': "import pg from 'pg';" } },
  {
    rule: 'module order',
    why: 'package.json',
    files: { 'src/cli.ts': "import p from '../package.json' with { type: 'json' };" },
  },
  {
    rule: 'money/holds',
    why: 'where money is held',
    files: { 'src/chat/hold.ts': "import { hold } from '../money/holds.ts'; app.holds.hold(request);" },
  },
  {
    rule: 'money/holds',
    why: 'what only reads, and types',
    files: {
      'src/api/money.ts': "import type { HoldRequest } from '../money/holds.ts'; await app.holds.flush(id);",
      'src/api/a.ts': "import { type Funds } from '../money/reservations.ts'; type Parts = Pick<App, 'holds'>;",
    },
  },
  {
    rule: 'unused file',
    why: 'a worker thread',
    files: { 'src/main.ts': "new Worker(new URL('./lib/a.ts', import.meta.url));", 'src/lib/a.ts': '' },
  },
  {
    rule: 'table owner',
    why: 'the module above a reason, as older migrations name it',
    files: { 'sql/migrations/0001_a.sql': '-- room: money\n-- because\ncreate table a ();' },
  },
  ...["query('select * from tasks')", 'throw new Error(`no answer from tasks after ${ms} ms`);'].map((text) => ({
    rule: 'sql owner',
    why: text,
    files: {
      'sql/migrations/0001_a.sql': owned,
      [text.startsWith('throw') ? 'src/chat/a.ts' : 'src/tasks/a.ts']: text,
    },
  })),
  {
    rule: 'sql owner',
    why: 'a column',
    files: { 'sql/migrations/0001_a.sql': owned, 'src/chat/a.ts': "query('select tasks from calls')" },
  },
  { rule: 'money', why: 'whole numbers', files: { 'src/money/a.ts': 'f(10n ** 6n, -a, 3, 1e9, a - b);' } },
  { rule: 'environment', why: 'its own module', files: { 'src/config.ts': 'f(process.env);' } },
  { rule: 'environment', why: 'another env', files: { 'src/app.ts': 'f(options.env, process.pid);' } },
  {
    rule: 'docstring',
    why: 'half a sentence about a value',
    files: { 'src/chat/a.ts': '/** In bytes. */\nexport const size_max = 1;' },
  },
  {
    rule: 'docstring',
    why: 'a comment in the code',
    files: { 'src/lib/a.ts': '// What it costs.\n/* How it grows. */\n/** Whatever it costs. */\nconst cost = 1;' },
  },
  ...['const outcome = { found: 1 };', 'const { told } = answer;', 'const unknown = makePgBoss();'].map((text) => ({
    rule: 'coined word',
    why: text,
    files: { 'src/lib/a.ts': text },
  })),
  {
    rule: 'provider name',
    why: 'the style of that name',
    files: { 'src/providers/adapters/acme/adapter.ts': '', 'src/styles/acme/codec.ts': "f('acme');" },
  },
  {
    rule: 'style name',
    why: 'its own folder',
    files: { 'src/styles/acme/codec.ts': "if (request.style.name === 'acme') work();" },
  },
  {
    rule: 'style name',
    why: 'the list of styles, and that of endpoints',
    files: {
      'src/styles/acme/codec.ts': '',
      'src/styles/index.ts': "styles.find(({ name }) => name === 'acme');",
      'src/server.ts': "styles.find(({ name }) => name === 'acme');",
    },
  },
  {
    rule: 'style name',
    why: 'a member of that name',
    files: { 'src/styles/acme/codec.ts': '', 'src/chat/a.ts': "const body = { model, acme: body['acme'] };" },
  },
  {
    rule: 'provider name',
    why: 'the catalogue',
    files: { 'src/providers/adapters/acme/adapter.ts': '', 'src/catalog/a.ts': "f('acme');" },
  },
  {
    rule: 'provider name',
    why: 'the contract',
    files: { 'src/providers/provider.ts': '', 'src/app.ts': "f('provider');" },
  },
  {
    rule: 'provider name',
    why: 'what adapters have in common',
    files: {
      'src/providers/adapters/acme/adapter.ts': '',
      'src/providers/http/refusal.ts': '',
      'src/app.ts': "f('refusal', 'provider');",
    },
  },
  {
    rule: 'types',
    why: 'the word',
    files: { 'src/lib/a.ts': "const any = 'any'; // any will do\nf(a as const, b as B);" },
  },
  { rule: 'function length', why: '70 lines', files: { 'src/lib/a.ts': `function a() {\n${lines(68)}}\n` } },
  {
    rule: 'function length',
    why: 'describe',
    files: { 'test/a.test.ts': `describe.each([])('a', () => {\n${lines(80)}});\n` },
  },
  { rule: 'file length', why: '500 lines', files: { 'src/lib/a.ts': lines(500) } },
  { rule: 'fixed sleep', why: 'a short one', files: { 'test/a.test.ts': 'await sleep(100);' } },
  { rule: 'fixed sleep', why: 'a time with a name', files: { 'test/a.test.ts': 'await sleep(outage_ms);' } },
  {
    rule: 'fixed sleep',
    why: 'a limit',
    files: {
      'test/a.test.ts': 'const timer = setTimeout(fail, 60_000); new Promise((ok) => setTimeout(() => ok(1), 5));',
    },
  },
  {
    rule: 'sleeping test',
    why: 'another skip',
    files: { 'test/a.test.ts': "parser.skip(1); it('a', { timeout: 1 }, f);" },
  },
  { rule: 'leftover mark', why: 'a template of mkdtemp', files: { 'src/lib/a.ts': "f('a-XXXXXX');" } },
  {
    rule: 'machine path',
    why: 'a relative one',
    files: { 'web/a.ts': `import './${'home'}/page.ts'; f('/${'home'}s/'); f(\`\${a}/${'work'}/b\`);` },
  },
  { rule: 'registry host', why: 'a variable', files: { 'src/lib/a.ts': 'registry.metrics.size;' } },
  { rule: 'one title', why: 'a comment in code', files: { 'README.md': '# A\n```sh\n# B\n```\n' } },
];
