/// <reference types="vite/types/importMeta.d.ts" />
import type { RefusalSeen } from './seen-refusal.ts';

const files = import.meta.glob<{ readonly SEEN: RefusalSeen }>('./seen/*.ts', { eager: true });

/** Everything that was recorded of any provider. */
export const ALL_SEEN: readonly RefusalSeen[] = Object.values(files).map(({ SEEN }) => SEEN);
