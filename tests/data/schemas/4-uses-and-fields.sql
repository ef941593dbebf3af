BEGIN TRANSACTION;
CREATE TABLE conversations (
	n INTEGER NOT NULL, 
	id VARCHAR(32) NOT NULL, 
	user VARCHAR(200) NOT NULL, 
	title VARCHAR(200) NOT NULL, 
	created VARCHAR(40) NOT NULL, 
	changed VARCHAR(40) NOT NULL, 
	PRIMARY KEY (n), 
	UNIQUE (id)
);
INSERT INTO "conversations" VALUES(1,'1a20e610f337','ada','What is a good diet?','2026-11-25T13:28:40.355871+00:00','2026-11-25T13:28:40.404502+00:00');
INSERT INTO "conversations" VALUES(2,'8044c182f0d1','bob','Work','2026-11-25T13:28:40.435904+00:00','2026-11-25T13:28:40.436568+00:00');
CREATE TABLE fact_fields (
	fact VARCHAR(32) NOT NULL, 
	field VARCHAR(32) NOT NULL, 
	PRIMARY KEY (fact), 
	FOREIGN KEY(fact) REFERENCES facts (id) ON DELETE CASCADE
);
INSERT INTO "fact_fields" VALUES('b83cc89648f6','health');
CREATE TABLE facts (
	n INTEGER NOT NULL, 
	id VARCHAR(32) NOT NULL, 
	user VARCHAR(200) NOT NULL, 
	text TEXT NOT NULL, 
	"key" VARCHAR(1000) NOT NULL, 
	source VARCHAR(200) NOT NULL, 
	"on" BOOLEAN NOT NULL, 
	created VARCHAR(40) NOT NULL, 
	changed VARCHAR(40) NOT NULL, 
	PRIMARY KEY (n), 
	UNIQUE (user, "key"), 
	UNIQUE (id)
);
INSERT INTO "facts" VALUES(1,'b83cc89648f6','ada','I''m lactose intolerant.','im lactose intolerant','typed',1,'2026-11-25T13:28:40.320485+00:00','2026-11-25T13:28:40.320485+00:00');
INSERT INTO "facts" VALUES(2,'d7d2fd99e785','ada','I like tea.','i like tea','typed',0,'2026-11-25T13:28:40.322991+00:00','2026-11-25T13:28:40.323687+00:00');
INSERT INTO "facts" VALUES(3,'0f0859e10075','bob','I''m an engineer.','im an engineer','typed',1,'2026-11-25T13:28:40.342743+00:00','2026-11-25T13:28:40.342743+00:00');
CREATE TABLE preferences (
	user VARCHAR(200) NOT NULL, 
	choices TEXT NOT NULL, 
	PRIMARY KEY (user)
);
INSERT INTO "preferences" VALUES('ada','{"k": 6}');
CREATE TABLE schema_version (
	id INTEGER NOT NULL, 
	version INTEGER, 
	PRIMARY KEY (id)
);
INSERT INTO "schema_version" VALUES(1,2);
CREATE TABLE turns (
	n INTEGER NOT NULL, 
	id VARCHAR(32) NOT NULL, 
	conversation VARCHAR(32) NOT NULL, 
	process VARCHAR(32) NOT NULL, 
	utterance TEXT NOT NULL, 
	reply TEXT NOT NULL, 
	words TEXT NOT NULL, 
	feedback INTEGER NOT NULL, 
	turn TEXT NOT NULL, 
	PRIMARY KEY (n), 
	UNIQUE (id), 
	FOREIGN KEY(conversation) REFERENCES conversations (id) ON DELETE CASCADE
);
INSERT INTO "turns" VALUES(1,'7941b8f24496','1a20e610f337','38248e5b8a50','What is a good diet?','Lentils are rich in protein. [1]','what is a good diet?
lentils are rich in protein. [1]',1,'{"utterance":"What is a good diet?","history":[],"known":[],"choices":{"strategy":"concat_pf","loop":"grg","k":4,"library":"starter","form":"chat","loops":1,"retriever":"bm25","below":""},"id":"7941b8f24496","created":"2026-11-25T13:28:40.365563Z","status":"done","step":"","temporary":false,"intent":"question","asks":"","question":"","rewritten":false,"facts":[],"draft":"","iterations":[],"queries":[],"passages":[{"id":"p1","title":"Lentils","text":"Lentils are rich in protein.","score":1.5,"found_by":[],"source":"","confidence":null}],"reserve":[],"confidence":null,"dropped":[],"digests":[],"left_out":[],"answer":{"text":"Lentils are rich in protein. [1]","unknown":false,"origin":"passages"},"own_answer":"","pool":[],"reasoning":"","sentences":[],"citations":[],"listed":[],"about":"","offers":[],"events":[],"cuts":[],"error":"","timings":{},"spent":{},"model":""}');
INSERT INTO "turns" VALUES(2,'a7a9524de0c4','1a20e610f337','38248e5b8a50','And to drink?','Oat drink.','and to drink?
oat drink.',0,'{"utterance":"And to drink?","history":[],"known":[],"choices":{"strategy":"concat_pf","loop":"grg","k":4,"library":"starter","form":"chat","loops":1,"retriever":"bm25","below":""},"id":"a7a9524de0c4","created":"2026-11-25T13:28:40.387726Z","status":"done","step":"","temporary":false,"intent":"question","asks":"","question":"","rewritten":false,"facts":[],"draft":"","iterations":[],"queries":[],"passages":[],"reserve":[],"confidence":null,"dropped":[],"digests":[],"left_out":[],"answer":{"text":"Oat drink.","unknown":false,"origin":"passages"},"own_answer":"","pool":[],"reasoning":"","sentences":[],"citations":[],"listed":[],"about":"","offers":[],"events":[],"cuts":[],"error":"","timings":{},"spent":{},"model":""}');
INSERT INTO "turns" VALUES(3,'1ae949ed9804','1a20e610f337','38248e5b8a50','And to drink?','Tea, without milk.','and to drink?
tea, without milk.',0,'{"utterance":"And to drink?","history":[],"known":[],"choices":{"strategy":"concat_pf","loop":"grg","k":4,"library":"starter","form":"chat","loops":1,"retriever":"bm25","below":""},"id":"1ae949ed9804","created":"2026-11-25T13:28:40.397021Z","status":"done","step":"","temporary":false,"intent":"question","asks":"","question":"","rewritten":false,"facts":[],"draft":"","iterations":[],"queries":[],"passages":[],"reserve":[],"confidence":null,"dropped":[],"digests":[],"left_out":[],"answer":{"text":"Tea, without milk.","unknown":false,"origin":"passages"},"own_answer":"","pool":[],"reasoning":"","sentences":[],"citations":[],"listed":[],"about":"","offers":[],"events":[],"cuts":[],"error":"","timings":{},"spent":{},"model":""}');
INSERT INTO "turns" VALUES(4,'90fb8fa3e25b','8044c182f0d1','38248e5b8a50','Hello','Hi.','hello
hi.',0,'{"utterance":"Hello","history":[],"known":[],"choices":{"strategy":"concat_pf","loop":"grg","k":4,"library":"starter","form":"chat","loops":1,"retriever":"bm25","below":""},"id":"90fb8fa3e25b","created":"2026-11-25T13:28:40.436318Z","status":"done","step":"","temporary":false,"intent":"question","asks":"","question":"","rewritten":false,"facts":[],"draft":"","iterations":[],"queries":[],"passages":[],"reserve":[],"confidence":null,"dropped":[],"digests":[],"left_out":[],"answer":{"text":"Hi.","unknown":false,"origin":"passages"},"own_answer":"","pool":[],"reasoning":"","sentences":[],"citations":[],"listed":[],"about":"","offers":[],"events":[],"cuts":[],"error":"","timings":{},"spent":{},"model":""}');
CREATE TABLE users (
	name VARCHAR(64) NOT NULL, 
	hash VARCHAR(300) NOT NULL, 
	created VARCHAR(40) NOT NULL, 
	PRIMARY KEY (name)
);
INSERT INTO "users" VALUES('ada','scrypt$16384$8$5$/i5LRSx/yRGpUdXWJKOGsQ==$U70Or7t16rh9db2/jvTZG96IotYsdXtJVI5bDX2Hxoo=','2026-11-25T13:28:42.538808+00:00');
CREATE TABLE uses (
	turn VARCHAR(32) NOT NULL, 
	fact VARCHAR(32) NOT NULL, 
	PRIMARY KEY (turn, fact), 
	FOREIGN KEY(turn) REFERENCES turns (id) ON DELETE CASCADE
);
INSERT INTO "uses" VALUES('7941b8f24496','b83cc89648f6');
CREATE TABLE versions (
	turn VARCHAR(32) NOT NULL, 
	original VARCHAR(32) NOT NULL, 
	shown INTEGER NOT NULL, 
	side INTEGER NOT NULL, 
	PRIMARY KEY (turn), 
	FOREIGN KEY(turn) REFERENCES turns (id) ON DELETE CASCADE, 
	FOREIGN KEY(original) REFERENCES turns (id) ON DELETE CASCADE
);
INSERT INTO "versions" VALUES('a7a9524de0c4','a7a9524de0c4',0,0);
INSERT INTO "versions" VALUES('1ae949ed9804','a7a9524de0c4',1,0);
CREATE INDEX ix_conversations_user ON conversations (user);
CREATE INDEX turns_of ON turns (conversation, n);
CREATE INDEX ix_uses_fact ON uses (fact);
CREATE INDEX ix_versions_original ON versions (original);
COMMIT;
