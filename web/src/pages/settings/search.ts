export const settings_tabs = ['profile', 'security', 'team', 'alerts', 'audit', 'appearance'] as const;

export type SettingsTab = (typeof settings_tabs)[number];

/** Search parameters of the page; the profile by default. */
export type SettingsSearch = { tab?: SettingsTab | undefined };

export function readSettingsSearch(search: Record<string, unknown>): SettingsSearch {
  const tab = settings_tabs.find((name) => name === search['tab']);
  return { tab: tab === 'profile' ? undefined : tab };
}
