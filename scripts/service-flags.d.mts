/** Node's flags for the script of the service. */
export const service_flags: readonly string[];
export const service_env: Readonly<Record<string, string>>;
