import type { Dialect } from '../contract/dialect.ts';
import type { NamesBySystem } from './provider.ts';

/** A server for models that people run themselves, at the port where it listens unless told otherwise. */
interface LocalServer {
  /** Id of the upstream that an import makes of it. */
  readonly id: string;
  readonly namedBy: NamesBySystem;
  readonly baseUrl: string;
  readonly dialect: Dialect;
}

/** Servers that other systems know by name. They are no upstreams until a configuration says so. */
export const LOCAL_SERVERS: readonly LocalServer[] = [
  {
    id: 'ollama-local',
    namedBy: { clawith: ['ollama'], picoclaw: ['ollama'] },
    baseUrl: 'http://localhost:11434',
    dialect: 'ollama',
  },
  {
    id: 'vllm',
    namedBy: { clawith: ['vllm'], picoclaw: ['vllm'] },
    baseUrl: 'http://localhost:8000',
    dialect: 'openai',
  },
  {
    id: 'sglang',
    namedBy: { clawith: ['sglang'] },
    baseUrl: 'http://localhost:30000',
    dialect: 'openai',
  },
  {
    id: 'lmstudio',
    namedBy: { picoclaw: ['lmstudio'] },
    baseUrl: 'http://localhost:1234',
    dialect: 'openai',
  },
];
