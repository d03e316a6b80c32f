import { safeName } from './calls.ts';

/** The names under which an upstream knows the caller's tools, in definitions, choices and history alike. */
export class ToolNames {
  readonly #caller_names = new Map<string, string>();

  forUpstream(name: string): string {
    const safe = safeName(name);
    if (safe !== name) this.#caller_names.set(safe, name);
    return safe;
  }

  /** What `UpstreamBody` says of them. */
  get changed(): { tool_names?: Map<string, string> } {
    return this.#caller_names.size === 0 ? {} : { tool_names: this.#caller_names };
  }
}
