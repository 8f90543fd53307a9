declare module 'vitest' {
  export interface ProvidedContext {
    /** Base URL of the one strict upstream of the workers project; each test takes a scope of it. */
    strictUpstreamUrl: string;
  }
}

export {};
