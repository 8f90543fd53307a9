/// <reference types="vite/types/importMeta.d.ts" />
import type { Seen } from './seen-refusal.ts';

const files = import.meta.glob<{ readonly SEEN: Seen }>('./seen/*.ts', { eager: true });

/** Everything that was recorded of any provider. */
export const ALL_SEEN: readonly Seen[] = Object.values(files).map(({ SEEN }) => SEEN);
