import { posix } from 'node:path';
import type { Node } from 'oxc-parser';
import { inSource, lineAt, memberName, walk, type Finding, type Rule, type Source, type Tree } from './tree.ts';

/** Modules in one order: a file imports from its own or an earlier one. */
type Codebase = {
  root: string;
  modules: readonly string[];
  moduleOf: (path: string) => string;
  /** Tells whether a file may import this one, which is of no module. */
  mayImport: (path: string, from: string) => boolean;
};

/** The modules of the service from the first to the last; a file directly in src/ is one of its own. */
const service: Codebase = {
  root: 'src/',
  modules: (
    'lib concurrency metrics json-schema config tracing errors net db embedded-postgres queue leases limits storage money files accounts billing catalog ' +
    'webhooks web-search styles providers routing tasks feedback contents app chat conversations test-calls backup monitoring alerts http api mcp batches dashboard server worker main cli'
  ).split(' '),
  moduleOf: (path) => (path.split('/')[1] ?? '').replace(/\.tsx?$/, ''),
  // The commands of callers use the client that callers use.
  mayImport: (path, from) =>
    path.endsWith('.json') || (path === 'clients/typescript/src/index.ts' && from.startsWith('src/cli/caller/')),
};

/** Those of the dashboard, where each page is one; of the service it has the types of its answers. */
const dashboard: Codebase = {
  root: 'web/src/',
  modules: (
    'styles below clipboard guide proof updated record api queries session theme ui shell ' +
    'pages/activity pages/admin pages/billing pages/budgets pages/chat pages/device pages/home pages/keys pages/models pages/playground ' +
    'pages/settings pages/sign-in pages/task pages/usage pages/speed pages/status pages/webhooks router main'
  ).split(' '),
  moduleOf: (path) => /^(?:pages\/)?[^./]+/.exec(path.slice('web/src/'.length))?.[0] ?? '',
  mayImport: (path) => path.startsWith('src/dashboard/views/'),
};

const codebases = [service, dashboard];

/** The modules of the service. */
export const modules = service.modules;

/** `money` for src/money/holds.ts. */
export const moduleOf = service.moduleOf;

/** Entry points for Node. Everything under src/ is reached from here. */
const entries = ['src/main.ts', 'src/cli.ts'];

type Import = { from: string; to: string; line: number };

/** Every way in which one file of ours names another: import, export … from, import(), type imports, new URL for workers. */
function importsOf(source: Source): Import[] {
  const imports: Import[] = [];
  walk(source.program, (node) => {
    const specifier = specifierOf(node);
    if (specifier === undefined || !specifier.startsWith('.')) return;
    const to = posix.join(posix.dirname(source.path), specifier);
    imports.push({ from: source.path, to, line: lineAt(source.text, node.start) });
  });
  return imports;
}

function specifierOf(node: Node): string | undefined {
  switch (node.type) {
    case 'ImportDeclaration':
    case 'ExportAllDeclaration':
      return node.source.value;
    case 'ExportNamedDeclaration':
      return node.source?.value;
    case 'ImportExpression':
    case 'TSImportType':
      return node.source.type === 'Literal' && typeof node.source.value === 'string' ? node.source.value : undefined;
    case 'NewExpression':
      return moduleUrl(node);
    default:
      return undefined;
  }
}

/** `./encode.ts` in `new URL('./encode.ts', import.meta.url)`. */
function moduleUrl(node: Extract<Node, { type: 'NewExpression' }>): string | undefined {
  const [first, second] = node.arguments;
  if (node.callee.type !== 'Identifier' || node.callee.name !== 'URL' || !second || memberName(second) !== 'url')
    return undefined;
  return first?.type === 'Literal' && typeof first.value === 'string' && first.value.endsWith('.ts')
    ? first.value
    : undefined;
}

function importsIn(tree: Tree, { root }: Codebase): Import[] {
  return tree.sources.filter(({ path }) => path.startsWith(root)).flatMap(importsOf);
}

export const known_modules: Rule = {
  name: 'modules',
  findings: (tree) =>
    codebases.flatMap((codebase) =>
      [...tree.files.keys()]
        .filter((path) => path.startsWith(codebase.root) && !codebase.modules.includes(codebase.moduleOf(path)))
        .map((file) => ({
          file,
          line: 1,
          advice: `"${codebase.moduleOf(file)}" is no module; put the file into one of: ${codebase.modules.join(' ')}`,
        })),
    ),
};

export const module_order: Rule = {
  name: 'module order',
  findings: (tree) =>
    codebases.flatMap((codebase) => importsIn(tree, codebase).flatMap((each) => judgeOrder(each, codebase))),
};

function judgeOrder(
  { from, to, line }: Import,
  { root, modules: order, moduleOf: nameOf, mayImport }: Codebase,
): Finding[] {
  if (!to.startsWith(root)) {
    return mayImport(to, from) ? [] : [{ file: from, line, advice: `${root} imports only from ${root}, not ${to}` }];
  }
  if (order.indexOf(nameOf(to)) <= order.indexOf(nameOf(from))) return [];
  const advice = `${nameOf(from)} comes before ${nameOf(to)} and may not import ${to}; hand it in from above, or move what both need down`;
  return [{ file: from, line, advice }];
}

export const no_cycles: Rule = {
  name: 'import cycle',
  findings: (tree) => {
    const graph = graphOf(codebases.flatMap((codebase) => importsIn(tree, codebase)));
    const done = new Set<string>();
    return [...graph.keys()].flatMap((start) => cyclesFrom(start, graph, done, []));
  },
};

function graphOf(imports: readonly Import[]): Map<string, Import[]> {
  const graph = new Map<string, Import[]>();
  for (const each of imports) graph.set(each.from, [...(graph.get(each.from) ?? []), each]);
  return graph;
}

function cyclesFrom(file: string, graph: Map<string, Import[]>, done: Set<string>, path: readonly string[]): Finding[] {
  if (done.has(file)) return [];
  const here = [...path, file];
  const findings = (graph.get(file) ?? []).flatMap((each): Finding[] => {
    const at = here.indexOf(each.to);
    if (at === -1) return cyclesFrom(each.to, graph, done, here);
    const circle = [...here.slice(at), each.to].join(' → ');
    return [{ file: each.from, line: each.line, advice: `${circle}; move what both need into a file of its own` }];
  });
  done.add(file);
  return findings;
}

/** The assembly: it starts the whole app, or hands it to the endpoints and jobs that it lists. */
const assembly = [
  /^src\/main\//,
  /^src\/cli\/command\.ts$/,
  /^src\/(?:app|server|worker)\.ts$/,
  /^src\/dashboard\/(?:page|endpoints)\.ts$/,
];

export const narrow_parameters: Rule = {
  name: 'whole app',
  findings: (tree) =>
    importsIn(tree, service)
      .filter(({ from, to }) => to === 'src/app.ts' && !assembly.some((each) => each.test(from)))
      .map(({ from, line }) => ({
        file: from,
        line,
        advice: 'only the assembly imports src/app.ts; take the parts that are needed, such as { db, clock }',
      })),
};

export const no_orphans: Rule = {
  name: 'unused file',
  findings: (tree) => {
    const graph = graphOf(importsIn(tree, service));
    const reached = new Set(entries);
    for (const file of reached) for (const each of graph.get(file) ?? []) reached.add(each.to);
    return tree.sources
      .filter(({ path }) => inSource(path) && !path.endsWith('.d.ts') && !reached.has(path))
      .map(({ path }) => ({
        file: path,
        line: 1,
        advice: `nothing that starts at ${entries.join(' or ')} imports it; use it or delete it`,
      }));
  },
};
