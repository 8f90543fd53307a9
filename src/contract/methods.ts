/** Methods of calls that may take a slot. HEAD and OPTIONS never do. */
export const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] as const;

/** Methods that are served at all. Any other is answered with 405, on every route. */
export const SERVED_METHODS: readonly string[] = [...METHODS, 'HEAD', 'OPTIONS'];

/** Methods that only read. */
export const READING_METHODS: readonly string[] = ['GET', 'HEAD'];

/** Those whose calls bring a body, as what generates does; others mostly ask what became of it. */
export const METHODS_WITH_BODY: readonly string[] = ['POST', 'PUT', 'PATCH'];
