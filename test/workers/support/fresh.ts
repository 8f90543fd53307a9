import { reset } from 'cloudflare:test';
import { vi } from 'vitest';

// Files share a process, because one for each costs more than most of the tests. Nothing else of an
// earlier file is left: no module of the Worker with what it remembers, and nothing in any object.
vi.resetModules();
await reset();
