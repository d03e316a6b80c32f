const browsers: [RegExp, string][] = [
  [/Edg\//, 'Edge'],
  [/OPR\//, 'Opera'],
  [/Firefox\//, 'Firefox'],
  [/Chrome\//, 'Chrome'],
  [/Safari\//, 'Safari'],
  [/curl\//, 'curl'],
];

const systems: [RegExp, string][] = [
  [/iPhone|iPad/, 'iOS'],
  [/Android/, 'Android'],
  [/Windows/, 'Windows'],
  [/Mac OS X/, 'macOS'],
  [/Linux/, 'Linux'],
];

/** `Firefox on Linux`: enough to tell one's own from somebody else's. */
export function browserText(user_agent: string | null): string {
  const named = (list: [RegExp, string][]) => list.find(([form]) => form.test(user_agent ?? ''))?.[1];
  const [browser, system] = [named(browsers), named(systems)];
  if (browser === undefined) return user_agent?.slice(0, 40) ?? 'Unknown';
  return system === undefined ? browser : `${browser} on ${system}`;
}
