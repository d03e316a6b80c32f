export { createMedley, medley, type MedleyProvider } from './provider.ts';
export type { MedleyProviderSettings } from './settings.ts';
