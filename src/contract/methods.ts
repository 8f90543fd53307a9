/** Methods of calls that may take a slot. HEAD and OPTIONS never do. */
export const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] as const;

/** All methods that are served. Any other method is answered with 405, on every route. */
export const SERVED_METHODS: readonly string[] = [...METHODS, 'HEAD', 'OPTIONS'];

/** Methods that only read. */
export const READING_METHODS: readonly string[] = ['GET', 'HEAD'];

/** Those whose calls bring a body, as what generates does; others mostly ask what became of it. */
export const METHODS_WITH_BODY: readonly string[] = ['POST', 'PUT', 'PATCH'];
