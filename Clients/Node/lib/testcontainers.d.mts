export * from './testcontainers.js';
