import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { spawnSync } from 'node:child_process';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/**
 * Answers against the types that the vendors publish in their SDKs. Each answer becomes a literal of its type in a file
 * that the compiler checks: it must have every required member, no other than those of the type, and known words.
 */

/** An answer or an event, as it came. `type`: an expression of the names in `head`. */
export type Sample = { what: string; type: string; value: unknown };

/**
 * `Wire`: a type of an SDK as it stands on the wire. Enumerations are words, and what the SDKs compute (methods, the
 * `output_text` of a response) is not there.
 */
const head = `import type OpenAI from 'openai-7';
import type Anthropic from 'anthropic-1';
import type * as Google from '@google/genai';
type Computed<T, K> = K extends keyof T ? T[K] extends (...args: never[]) => unknown ? K
  : T extends { object: 'response' } ? Extract<K, 'output_text'>
  : T extends { candidates?: unknown } ? Extract<K, 'text' | 'data' | 'functionCalls' | 'executableCode' | 'codeExecutionResult' | 'initialPromptTokenCount'>
  : never : never;
type Wire<T> = unknown extends T ? T
  : T extends string ? \`\${T}\`
  : T extends readonly (infer U)[] ? Wire<U>[]
  : T extends object ? { [K in keyof T as K extends Computed<T, K> ? never : K]: Wire<T[K]> }
  : T;
`;

const settings = {
  compilerOptions: {
    strict: true,
    exactOptionalPropertyTypes: true,
    noEmit: true,
    skipLibCheck: true,
    types: [],
    target: 'esnext',
    lib: ['esnext', 'dom', 'dom.iterable'],
    module: 'esnext',
    moduleResolution: 'bundler',
  },
  files: ['answers.ts'],
};

const modules = join(import.meta.dirname, '../../node_modules');

/** Returns what the compiler finds, each with the sample that it is about; equal findings once. */
export function faultsOf(samples: readonly Sample[]): string[] {
  const folder = mkdtempSync(join(tmpdir(), 'medley-types-'));
  try {
    symlinkSync(modules, join(folder, 'node_modules'));
    writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify(settings));
    const places: string[] = head.split('\n').map(() => 'head');
    const texts = samples.map(({ what, type, value }, index) => {
      const text = `export const answer_${index}: Wire<${type}> = ${JSON.stringify(value, shortened, 1)};\n`;
      for (const _ of text.matchAll(/\n/g)) places.push(what);
      return text;
    });
    const source = `${head}\n${texts.join('')}`;
    writeFileSync(join(folder, 'answers.ts'), source);
    const { status, stdout, stderr } = spawnSync(
      process.execPath,
      [join(modules, 'typescript/bin/tsc'), '-p', folder],
      {
        cwd: folder,
        encoding: 'utf8',
        maxBuffer: 64 * 1024 * 1024,
      },
    );
    if (status === 0) return [];
    const faults = findingsIn(stdout, places, source.split('\n'));
    if (faults.length === 0) throw new Error(`the compiler failed: ${stdout}${stderr}`);
    return [...new Set(faults)];
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function findingsIn(output: string, places: readonly string[], lines: readonly string[]): string[] {
  return [...output.matchAll(/^answers\.ts\((\d+),\d+\): error TS\d+: (.*(?:\n {2}.*)*)/gm)].map(([, line, text]) => {
    const at = Number(line) - 1;
    const message = text?.trim().split('\n').at(-1)?.trim().slice(0, 300);
    return `${places[at] ?? '?'} | ${lines[at]?.trim().slice(0, 100)} | ${message}`;
  });
}

/** Files in answers are longer than they need be here. */
function shortened(_: string, value: unknown): unknown {
  return typeof value === 'string' ? value.slice(0, 200) : value;
}
