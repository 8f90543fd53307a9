import type { Dialect } from '../contract/dialect.ts';
import type { NamesBySystem } from './provider.ts';

/** A server that other systems know by name. It only becomes an upstream through configuration. */
export interface NamedServer {
  /** Id of the upstream that an import creates for it. */
  readonly id: string;
  readonly namedBy: NamesBySystem;
  readonly baseUrl: string;
  readonly dialect: Dialect;
}

/** Self-hosted model servers, at their default ports. */
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
