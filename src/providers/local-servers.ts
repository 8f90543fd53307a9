import type { Dialect } from '../contract/dialect.ts';
import type { NamesBySystem } from './provider.ts';

/** A server that other systems know by name. It is no upstream until a configuration says so. */
export interface NamedServer {
  /** Id of the upstream that an import makes of it. */
  readonly id: string;
  readonly namedBy: NamesBySystem;
  readonly baseUrl: string;
  readonly dialect: Dialect;
}

/** Servers for models that people run themselves, at the port where they listen unless told otherwise. */
export const LOCAL_SERVERS: readonly NamedServer[] = [
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
    namedBy: { hermes: ['lmstudio'], picoclaw: ['lmstudio'] },
    baseUrl: 'http://localhost:1234',
    dialect: 'openai',
  },
  {
    id: 'litellm',
    namedBy: { picoclaw: ['litellm'] },
    baseUrl: 'http://localhost:4000',
    dialect: 'openai',
  },
];
