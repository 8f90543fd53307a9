/// <reference types="vite/types/importMeta.d.ts" />
import type { RecordedProvider } from './seen-refusal.ts';

const files = import.meta.glob<{ readonly SEEN: RecordedProvider }>('./seen/*.ts', { eager: true });

/** Everything that was recorded of any provider. */
export const ALL_SEEN: readonly RecordedProvider[] = Object.values(files).map(({ SEEN }) => SEEN);
