import { safeName } from './calls.ts';

/** The names under which an upstream knows the caller's tools, in definitions, choices and history alike. */
export class ToolNames {
  #caller_names: Map<string, string> | undefined; // few need any
  readonly #safe: (name: string) => string;

  /** `safe`: a name as the upstream takes it. */
  constructor(safe: (name: string) => string = safeName) {
    this.#safe = safe;
  }

  forUpstream(name: string): string {
    const safe = this.#safe(name);
    if (safe !== name) (this.#caller_names ??= new Map()).set(safe, name);
    return safe;
  }

  /** What `UpstreamBody` says of them. */
  get changed(): { tool_names?: Map<string, string> } {
    return this.#caller_names ? { tool_names: this.#caller_names } : {};
  }
}
